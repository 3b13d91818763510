// Team: the members and their roles, the open invitations, and the reader's own password and
// browsers.
import { useEffect, useState } from "preact/hooks";
import type { paths } from "#client/client.ts";
import { useMe } from "#ui/dashboard/data/lists.ts";
import { rowsOf } from "#ui/dashboard/data/rows.ts";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { useData } from "#ui/dashboard/data/use-data.ts";
import { useFocusReload } from "#ui/dashboard/data/use-focus.ts";
import { Button } from "#ui/dashboard/kit/controls.tsx";
import { Confirm, useToasts } from "#ui/dashboard/kit/dialog.tsx";
import { when, words } from "#ui/dashboard/kit/format.ts";
import { Card, Empty, Page, Status } from "#ui/dashboard/kit/layout.tsx";
import { Table, type Column } from "#ui/dashboard/kit/table.tsx";
import { EditMember, Invite, LinkDialog, type Link } from "./forms.tsx";
import { YourPicture } from "./picture.tsx";
import { AccountTimeZone } from "./time-zone.tsx";
import { You } from "./you.tsx";
import { t } from "#ui/dashboard/kit/texts.ts";

export type Member =
  paths["/user/members"]["get"]["responses"][200]["content"]["application/json"]["data"][number];
type Invitation =
  paths["/user/invitations"]["get"]["responses"][200]["content"]["application/json"]["data"][number];

type Asked =
  | { kind: "invite" } | { kind: "edit"; member: Member } | { kind: "remove"; member: Member }
  | { kind: "link"; link: Link } | { kind: "take-back"; invitation: Invitation };

export function Team() {
  const api = useApi();
  const toasts = useToasts();
  const me = useMe();
  const [asked, setAsked] = useState<Asked | null>(null);
  const members = useData("members", async () => (await unwrap(api.GET("/user/members"))).data);
  const isManager = me.value?.rights.includes("members") ?? false;
  useFocusReload(members.reload);
  /** Reloads the list whenever a dialog closes, whether its action succeeded or not. */
  const ask = (next: Asked | null): void => {
    setAsked(next);
    if (next === null) members.reload();
  };
  return (
    <Page
      title="Team"
      actions={(
        <Button kind="main" icon="add" needs="members" onClick={() => setAsked({ kind: "invite" })}>
          Invite
        </Button>
      )}
    >
      <Card class="flush">
        <Table
          label="Members" rowKey={({ id }) => id}
          columns={columnsOf(isManager, (member) => setAsked({ kind: "edit", member }))}
          rows={rowsOf(members.value, members.error, members.reload)}
          empty={(
            <Empty icon="leads" title="No members yet">
              You are signed in with an API key. Invite yourself as owner to sign in by e-mail.
            </Empty>
          )}
        />
      </Card>
      {isManager && (
        <Invitations asked={asked} onTakeBack={(invitation) => setAsked({ kind: "take-back", invitation })} />
      )}
      <AccountTimeZone />
      <YourPicture />
      {me.value?.user && <You hasPassword={me.value.user.has_password} />}
      {asked && <Asking asked={asked} onAsk={ask} onDone={toasts.notify} />}
    </Page>
  );
}

/** The dialog of the current action. */
function Asking({ asked, onAsk, onDone }: {
  asked: Asked; onAsk(next: Asked | null): void; onDone(text: string): void;
}) {
  const api = useApi();
  const close = (): void => onAsk(null);
  return (
    <>
      {asked.kind === "invite" && (
        <Invite onClose={close} onLink={(link) => onAsk({ kind: "link", link })} />
      )}
      {asked.kind === "link" && <LinkDialog {...asked.link} onClose={close} />}
      {asked.kind === "edit" && (
        <EditMember
          member={asked.member} onClose={close} onSaved={() => onDone("Saved")}
          onLink={(link) => onAsk({ kind: "link", link })}
          onRemove={() => onAsk({ kind: "remove", member: asked.member })}
        />
      )}
      {asked.kind === "remove" && (
        <Confirm
          title={`Remove ${asked.member.name}?`} action="Remove" onClose={close}
          onConfirm={async () => {
            const { id, name } = asked.member;
            await unwrap(api.DELETE("/user/members/{id}", { params: { path: { id } } }));
            onDone(t(`${name} is no longer a member`));
          }}
        >
          Sessions and streams end at once. API keys they created stay valid: review them.
        </Confirm>
      )}
      {asked.kind === "take-back" && (
        <Confirm
          title="Withdraw the invitation?" action="Withdraw" onClose={close}
          onConfirm={async () => {
            const { id } = asked.invitation;
            await unwrap(api.DELETE("/user/invitations/{id}", { params: { path: { id } } }));
          }}
        >
          The link for {asked.invitation.email} no longer works.
        </Confirm>
      )}
    </>
  );
}

/** One button per row: a narrow screen has no room for more. */
const columnsOf = (isManager: boolean, edit: (member: Member) => void): Column<Member>[] => [
  {
    title: "Name", grow: 1.2,
    cell: ({ name, is_you: isYou }) => <>{name} {isYou && <Status code="You" tone="busy" />}</>,
  },
  {
    title: "E-mail", priority: 2, grow: 1.8,
    cell: ({ email }) => <span class="two">{email}</span>,
  },
  { title: "Role", grow: 1.25, cell: ({ role }) => <Status code={role} /> },
  {
    title: "Last sign-in", priority: 3,
    cell: ({ last_sign_in_at: at }) => at === null ? "Never" : when(at),
  },
  ...isManager ? [{
    title: "Actions", align: "end", grow: 1.5,
    cell: (member: Member) => (
      <Button kind="quiet" label={`Change ${member.name}`} onClick={() => edit(member)}>Change</Button>
    ),
  } satisfies Column<Member>] : [],
];

/** `asked`: the current action, which changes the list. */
function Invitations({ asked, onTakeBack }: {
  asked: Asked | null; onTakeBack(invitation: Invitation): void;
}) {
  const api = useApi();
  const list = useData(
    "invitations", async () => (await unwrap(api.GET("/user/invitations"))).data);
  useEffect(list.reload, [asked, list.reload]);
  if (!list.value || list.value.length === 0) return null;
  return (
    <Card title="Open invitations" class="flush">
      <Table
        label="Invitations" rowKey={({ id }) => id} rows={rowsOf(list.value)} empty={null}
        columns={[
          { title: "E-mail", grow: 2, cell: ({ email }) => <span class="two">{email}</span> },
          {
            title: "Role", priority: 2,
            cell: ({ role, is_reset: isReset }) => isReset ? "New password" : words(role),
          },
          {
            title: "Invited by", priority: 2,
            // The dashboard's own text is translated, a person's name is not.
            cell: ({ invited_by: by }) => by === "Command line" ? "Command line" : by,
          },
          { title: "Until", priority: 2, cell: ({ expires_at: at }) => <time>{when(at)}</time> },
          {
            title: "Actions", align: "end", grow: "none",
            cell: (one) => (
              <Button
                kind="quiet" label={`Withdraw the invitation of ${one.email}`}
                onClick={() => onTakeBack(one)}
              >Withdraw</Button>
            ),
          },
        ]}
      />
    </Card>
  );
}
