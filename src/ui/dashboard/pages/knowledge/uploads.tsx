// Adding files: dropped or picked, each with its progress or the reason why it was refused.
import { useSession } from "#ui/dashboard/data/session.tsx";
import { Button } from "#ui/dashboard/kit/controls.tsx";
import { DropZone, SentBar } from "#ui/dashboard/kit/drop.tsx";
import { bytes } from "#ui/dashboard/kit/format.ts";
import { ACCEPTED, useUploads, type Item } from "./upload-queue.ts";
import { t } from "#ui/dashboard/kit/texts.ts";

export function Uploads({ knowledgebaseId, onDone }: {
  knowledgebaseId: number; onDone(): void;
}) {
  const { apiKey } = useSession();
  const queue = useUploads(knowledgebaseId, onDone);
  return (
    <>
      <DropZone
        label="Drop files here, or choose them" accept={ACCEPTED} isMany
        onFiles={(files) => queue.add(files, apiKey)}
      >
        PDF, DOCX, XLSX, PPTX, TXT, Markdown, HTML or CSV, at most 20 MB each
      </DropZone>
      {queue.items.length > 0 && (
        <ul class="knowledge-uploads" aria-label="Uploads">
          {queue.items.map((item) => (
            <Upload
              key={item.id} item={item} onAgain={() => queue.again(item.id, apiKey)}
              onRemove={() => queue.remove(item.id)}
            />
          ))}
        </ul>
      )}
    </>
  );
}

function stateOf({ state, share, file, problem }: Item): string {
  switch (state) {
    case "waiting":
      return `${bytes(file.size)}, waiting`;
    case "sending":
      return share < 1
        ? t(`${Math.round(share * 100)} % of ${bytes(file.size)}`)
        : t(`${bytes(file.size)} sent, being stored`);
    default:
      return problem ?? "It was not accepted.";
  }
}

function Upload({ item, onAgain, onRemove }: {
  item: Item; onAgain(): void; onRemove(): void;
}) {
  const { file: { name }, state, share } = item;
  const isOver = state === "failed" || state === "refused";
  return (
    <li>
      <span class="knowledge-file">
        <span>{name}</span>
        <small class={isOver ? "form-error" : undefined} role={isOver ? "alert" : undefined}>
          {stateOf(item)}
        </small>
      </span>
      <span class="actions">
        {state === "failed" && <Button onClick={onAgain}>Try again</Button>}
        <Button
          kind="quiet" icon="close" label={isOver ? `Dismiss ${name}` : `Cancel ${name}`}
          onClick={onRemove}
        />
      </span>
      {!isOver && <SentBar label={name} share={share} />}
    </li>
  );
}
