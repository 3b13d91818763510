// The small picture that visitors see of a member or an assistant. Any image is accepted and scaled
// down here, so that nothing large is sent, nor anything but the pixels.
import { useRef } from "preact/hooks";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { useData } from "#ui/dashboard/data/use-data.ts";
import { Button } from "#ui/dashboard/kit/controls.tsx";
import { useToastedWork, useToasts } from "#ui/dashboard/kit/dialog.tsx";
import { Card } from "#ui/dashboard/kit/layout.tsx";

const SIDE_PX = 64;

/** Its centre, cropped to a square. */
async function smallOf(file: File): Promise<string> {
  const bitmap = await createImageBitmap(file);
  const side = Math.min(bitmap.width, bitmap.height);
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = SIDE_PX;
  const [left, top] = [(bitmap.width - side) / 2, (bitmap.height - side) / 2];
  canvas.getContext("2d")?.drawImage(bitmap, left, top, side, side, 0, 0, SIDE_PX, SIDE_PX);
  bitmap.close();
  return canvas.toDataURL("image/png");
}

export function Picture({ label, value, onInput, needs }: {
  label: string; value: string | null; onInput(image: string | null): void;
  needs?: "answer" | "build";
}) {
  const toasts = useToasts();
  const input = useRef<HTMLInputElement>(null);
  const choose = (file: File | undefined): void => {
    if (file) {
      smallOf(file).then(onInput, () => toasts.fail(new Error("This picture cannot be read.")));
    }
  };
  const own = needs === undefined ? {} : { needs };
  return (
    <div class="actions">
      {value && <img src={value} alt={label} width={48} height={48} style={{ borderRadius: "50%" }} />}
      <input
        ref={input} type="file" accept="image/*" hidden aria-label={label}
        onChange={({ currentTarget }) => {
          choose(currentTarget.files?.[0]);
          currentTarget.value = "";
        }}
      />
      <Button {...own} onClick={() => input.current?.click()}>
        {value ? "Change the picture" : "Choose a picture"}
      </Button>
      {value && <Button {...own} kind="quiet" onClick={() => onInput(null)}>Remove it</Button>}
    </div>
  );
}

export function YourPicture() {
  const api = useApi();
  const { run } = useToastedWork();
  const { value, reload } = useData("avatar", () => unwrap(api.GET("/user/avatar")));
  return (
    <Card title="Your picture">
      <p>Visitors see it while you answer; without one they see your initials.</p>
      <Picture
        label="your picture" needs="answer" value={value?.avatar ?? null}
        onInput={(avatar) => run(async () => {
          await unwrap(api.PUT("/user/avatar", { body: { avatar } }));
          reload();
        })}
      />
    </Card>
  );
}
