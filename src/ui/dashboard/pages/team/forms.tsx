// Inviting somebody, and changing a member's name and role.
import { useState } from "preact/hooks";
import { useEdited } from "#ui/dashboard/data/meanwhile.ts";
import { fieldErrors, unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { Button, Form, SelectField, TextField, useWork } from "#ui/dashboard/kit/controls.tsx";
import { Copyable } from "#ui/dashboard/kit/copy.tsx";
import { Dialog } from "#ui/dashboard/kit/dialog.tsx";
import { Notice } from "#ui/dashboard/kit/layout.tsx";
import type { Member } from "./team.tsx";

type Role = Member["role"];

const ROLES: { value: Role; label: string }[] = [
  { value: "viewer", label: "Viewer: reads" },
  { value: "operator", label: "Operator: answers visitors and callers" },
  { value: "builder", label: "Builder: also changes assistants" },
  { value: "admin", label: "Admin: everything but owners" },
  { value: "owner", label: "Owner: everything" },
];

export interface Link {
  link: string;
  text: string;
}

export function LinkDialog({ link, text, onClose }: Link & { onClose(): void }) {
  return (
    <Dialog title="A link to pass on" onClose={onClose}>
      <p>{text}</p>
      <Notice tone="warn">It works once, and is shown only now.</Notice>
      <Copyable label="Link" text={link} />
      <div class="form-actions"><Button kind="main" onClick={onClose}>Done</Button></div>
    </Dialog>
  );
}

export function Invite({ onClose, onLink }: { onClose(): void; onLink(link: Link): void }) {
  const api = useApi();
  const [email, setEmail] = useState("");
  const [role, setRole] = useState<Role>("operator");
  const [error, setError] = useState<unknown>(null);
  const invite = async (): Promise<void> => {
    const { link } = await unwrap(api.POST("/user/invitations", {
      body: { email: email.trim(), role },
    }));
    onLink({ link, text: `For ${email.trim()}. Valid for seven days.` });
  };
  return (
    <Dialog title="Invite somebody" onClose={onClose}>
      <Form
        submit="Create the link" error={error} onError={setError} onSubmit={invite} onCancel={onClose}
      >
        <TextField
          label="E-mail" type="email" value={email} onInput={setEmail} required autoComplete="off"
          error={fieldErrors(error).email}
        />
        <SelectField
          label="Role" value={role} onInput={(next) => setRole(next as Role)} options={ROLES}
        />
      </Form>
    </Dialog>
  );
}

const fieldsOf = ({ name, role }: Member) => ({ name, role });

export function EditMember({ member, onClose, onSaved, onLink, onRemove }: {
  member: Member; onClose(): void; onSaved(): void; onLink(link: Link): void; onRemove(): void;
}) {
  const api = useApi();
  const edited = useEdited(fieldsOf(member));
  const { name, role } = edited.fields;
  const [error, setError] = useState<unknown>(null);
  const errors = fieldErrors(error);
  const reset = useWork(setError);
  const params = { path: { id: member.id } };
  const save = async (): Promise<void> => {
    const { data } = await unwrap(api.GET("/user/members"));
    const now = data.find(({ id }) => id === member.id) ?? member;
    const body = edited.onto(fieldsOf(now));
    await unwrap(api.PATCH("/user/members/{id}", {
      params, body: { ...body, name: body.name.trim() },
    }));
    onSaved();
    onClose();
  };
  const makeLink = async (): Promise<void> => {
    const { link } = await unwrap(api.POST("/user/members/{id}/password-link", { params }));
    onLink({ link, text: `Sets a new password for ${member.email}. Valid for a day.` });
  };
  return (
    <Dialog title={`Change ${member.name}`} onClose={onClose}>
      <Form submit="Save" onSubmit={save} error={error} onError={setError} onCancel={onClose}>
        <TextField
          label="Name" value={name} onInput={(text) => edited.set({ name: text })} required
          maxLength={100} autoComplete="off" error={errors.name}
        />
        <SelectField
          label="Role" value={role} onInput={(next) => edited.set({ role: next as Role })}
          options={ROLES} error={errors.role}
        />
      </Form>
      <div class="form-actions">
        <Button
          kind="quiet" label={`New password for ${member.name}`} isBusy={reset.isBusy}
          onClick={() => reset.run(makeLink)}
        >New password</Button>
        <Button kind="quiet" label={`Remove ${member.name}`} onClick={onRemove}>Remove</Button>
      </div>
    </Dialog>
  );
}
