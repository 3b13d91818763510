// One lead: the state of calling it, and its editable fields.
import { useCallback, useState } from "preact/hooks";
import { useLocation } from "wouter-preact";
import type { Frame } from "#client/client.ts";
import type { PageProps } from "#ui/dashboard/page.ts";
import { useEvents } from "#ui/dashboard/data/live.tsx";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { useData } from "#ui/dashboard/data/use-data.ts";
import { Button } from "#ui/dashboard/kit/controls.tsx";
import { Confirm, useToasts } from "#ui/dashboard/kit/dialog.tsx";
import { count, whenExactly } from "#ui/dashboard/kit/format.ts";
import { Card, Facts, Loaded, Page, Status } from "#ui/dashboard/kit/layout.tsx";
import { formatPhone } from "#ui/dashboard/pages/phone.ts";
import { DeletePerson } from "#ui/dashboard/pages/conversations/delete-person.tsx";
import { useCalmly } from "#ui/dashboard/data/use-calmly.ts";
import { EditLead } from "./edit-lead.tsx";
import { dueWords, type Lead } from "./live-leads.ts";
import "./leads.css";

const BACK = { href: "#/leads", label: "Leads" };
const EVENTS = ["lead_status_changed"];
const RELOAD_MS = 1000;

export function LeadPage({ params }: PageProps) {
  return <One key={params.id} id={Number(params.id)} />;
}

function One({ id }: { id: number }) {
  const api = useApi();
  const data = useData(`lead ${id}`, () =>
    unwrap(api.GET("/user/leads/{id}", { params: { path: { id } } })));
  const { value: lead, reload } = data;
  const reloadSoon = useCalmly(reload, RELOAD_MS);
  const contacts = lead?.secondary_contacts;
  const hear = useCallback(({ lead_id: changed }: Frame) => {
    // Without an id, events were missed.
    const isMine = changed === undefined || changed === id;
    if (isMine || contacts?.some((contact) => contact.id === changed)) reloadSoon();
  }, [id, contacts, reloadSoon]);
  useEvents(EVENTS, hear);
  return (
    <Page
      title={lead ? formatPhone(lead.phone_number) : "Lead"} back={BACK}
      actions={lead && <><Status code={lead.status} /><Delete lead={lead} />
        <DeletePerson person={{ phone_number: lead.phone_number }} home="/leads" /></>}
    >
      <Loaded data={data}>
        {(found) => (
          <div class="grid two">
            <div class="stack">
              <Card title="Calling"><Calling lead={found} /></Card>
              {found.secondary_contacts.length > 0 && <Contacts lead={found} />}
            </div>
            <EditLead lead={found} onSaved={data.set} />
          </div>
        )}
      </Loaded>
    </Page>
  );
}

const callLink = (id: number | null) =>
  id === null ? "–" : <a key="call" href={`#/calls/${id}`}>Call {id}</a>;

function Calling({ lead }: { lead: Lead }) {
  const { campaign, call_tries: tries, next_try_at: next } = lead;
  return (
    <Facts
      rows={[
        ["Campaign", <a key="campaign" href={`#/campaigns/${campaign.id}`}>{campaign.name}</a>],
        ["Tries", count(tries)],
        ["Next try", next ? dueWords(next, whenExactly) : "–"],
        [lead.status === "processing" ? "Call in progress" : "Last call", callLink(lead.last_call_id)],
        ["Added", whenExactly(lead.created_at)],
        ["Changed", whenExactly(lead.updated_at)],
      ]}
    />
  );
}

function Contacts({ lead }: { lead: Lead }) {
  return (
    <Card title="Other numbers" class="leads-contacts">
      <div class="scrolls" tabIndex={0} role="region" aria-label="Other numbers">
        <table class="figures">
          <thead>
            <tr>
              <th scope="col">Number</th><th scope="col">Status</th>
              <th scope="col">Tries</th><th scope="col">Last call</th>
            </tr>
          </thead>
          <tbody>
            {lead.secondary_contacts.map((contact) => (
              <tr key={contact.id}>
                <td>{formatPhone(contact.phone_number)}</td>
                <td><Status code={contact.status} /></td>
                <td>{count(contact.call_tries)}</td>
                <td>{callLink(contact.last_call_id)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Card>
  );
}

function Delete({ lead }: { lead: Lead }) {
  const api = useApi();
  const toasts = useToasts();
  const [, navigate] = useLocation();
  const [isAsking, setAsking] = useState(false);
  return (
    <>
      <Button kind="quiet" needs="build" onClick={() => setAsking(true)}>Delete</Button>
      {isAsking && (
        <Confirm
          title={`Delete ${formatPhone(lead.phone_number)}?`} action="Delete" onClose={() => setAsking(false)}
          onConfirm={async () => {
            const { message } = await unwrap(
              api.DELETE("/user/leads/{id}", { params: { path: { id: lead.id } } }));
            toasts.notify(message);
            navigate("/leads");
          }}
        >
          Its other numbers are deleted too; past calls stay. This cannot be undone.
        </Confirm>
      )}
    </>
  );
}
