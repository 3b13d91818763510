// Inviting somebody, and changing a member's name and role.
import { useState } from "preact/hooks";
import { fieldErrors, unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { Button, Form, SelectField, TextField } from "#ui/dashboard/kit/controls.tsx";
import { Copyable } from "#ui/dashboard/kit/copy.tsx";
import { Dialog } from "#ui/dashboard/kit/dialog.tsx";
import { Notice } from "#ui/dashboard/kit/layout.tsx";
import type { Member } from "./team.tsx";

type Role = Member["role"];

const ROLES: { value: Role; label: string }[] = [
  { value: "viewer", label: "Viewer: reads" },
  { value: "operator", label: "Operator: answers visitors and callers" },
  { value: "builder", label: "Builder: changes assistants, too" },
  { value: "admin", label: "Admin: everything but owners" },
  { value: "owner", label: "Owner: everything" },
];

export interface Link {
  link: string;
  text: string;
}

export function LinkDialog({ link, text, onClose }: Link & { onClose(): void }) {
  return (
    <Dialog title="A link to hand over" onClose={onClose}>
      <p>{text}</p>
      <Notice tone="warn">It works once, and is shown only now.</Notice>
      <Copyable label="Link" text={link} />
      <div class="form-actions"><Button kind="main" onClick={onClose}>I have it</Button></div>
    </Dialog>
  );
}

export function Invite({ onClose, onLink }: { onClose(): void; onLink(link: Link): void }) {
  const api = useApi();
  const [email, setEmail] = useState("");
  const [role, setRole] = useState<Role>("operator");
  const [error, setError] = useState<unknown>(null);
  const invite = async (): Promise<void> => {
    try {
      const { link } = await unwrap(api.POST("/user/invitations", {
        body: { email: email.trim(), role },
      }));
      onLink({ link, text: `For ${email.trim()}, within seven days.` });
    } catch (failure) {
      setError(failure);
    }
  };
  return (
    <Dialog title="Invite somebody" onClose={onClose}>
      <Form submit="Make the link" onSubmit={invite} error={error} onCancel={onClose}>
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

export function EditMember({ member, onClose, onSaved }: {
  member: Member; onClose(): void; onSaved(): void;
}) {
  const api = useApi();
  const [name, setName] = useState(member.name);
  const [role, setRole] = useState(member.role);
  const [error, setError] = useState<unknown>(null);
  const save = async (): Promise<void> => {
    try {
      await unwrap(api.PATCH("/user/members/{id}", {
        params: { path: { id: member.id } }, body: { name: name.trim(), role },
      }));
      onSaved();
      onClose();
    } catch (failure) {
      setError(failure);
    }
  };
  return (
    <Dialog title={`Change ${member.name}`} onClose={onClose}>
      <Form submit="Save" onSubmit={save} error={error} onCancel={onClose}>
        <TextField
          label="Name" value={name} onInput={setName} required maxLength={100} autoComplete="off"
          error={fieldErrors(error).name}
        />
        <SelectField
          label="Role" value={role} onInput={(next) => setRole(next as Role)} options={ROLES}
        />
      </Form>
    </Dialog>
  );
}
