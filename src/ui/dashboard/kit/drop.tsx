// A place to drop files on, which is a file field, too, and a progress bar for an upload.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Icon } from "./icons.tsx";
import "./drop.css";

export function DropZone({ label, accept, isMany = false, disabled = false, onFiles, children }: {
  /** What kind of file is wanted; also the field's name. */
  label: string;
  accept: string;
  isMany?: boolean;
  disabled?: boolean;
  onFiles(files: File[]): void;
  /** A hint. */
  children?: ComponentChildren;
}) {
  const [isOver, setOver] = useState(false);
  const take = (list: FileList | null | undefined): void => {
    const files = [...list ?? []];
    if (files.length > 0 && !disabled) onFiles(isMany ? files : files.slice(0, 1));
  };
  return (
    <label
      class={`drop ${isOver ? "over" : ""} ${disabled ? "off" : ""}`}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(!disabled);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        take(event.dataTransfer?.files);
      }}
    >
      <Icon name="upload" />
      <strong>{label}</strong>
      {children && <small>{children}</small>}
      <input
        type="file" accept={accept} multiple={isMany} disabled={disabled} aria-label={label}
        onChange={(event) => {
          take(event.currentTarget.files);
          // So that the same file can be picked again.
          event.currentTarget.value = "";
        }}
      />
    </label>
  );
}

export function SentBar({ label, share }: { label: string; share: number }) {
  const percent = Math.round(share * 100);
  return (
    <div
      class="sent" role="progressbar" aria-label={label} aria-valuenow={percent}
      aria-valuemin={0} aria-valuemax={100}
    >
      <i style={{ width: `${percent}%` }} />
    </div>
  );
}
