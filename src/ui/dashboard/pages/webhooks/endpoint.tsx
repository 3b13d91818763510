// One endpoint: its state, its actions, and its deliveries.
import { useState } from "preact/hooks";
import { useLocation } from "wouter-preact";
import type { PageProps } from "#ui/dashboard/page.ts";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { useData, type Data } from "#ui/dashboard/data/use-data.ts";
import { useFocusReload } from "#ui/dashboard/data/use-focus.ts";
import { Button } from "#ui/dashboard/kit/controls.tsx";
import { Confirm, useToastedWork, useToasts } from "#ui/dashboard/kit/dialog.tsx";
import { when, whenExactly } from "#ui/dashboard/kit/format.ts";
import { Card, Facts, Loaded, Notice, Page } from "#ui/dashboard/kit/layout.tsx";
import { DeliveryTable, NO_FILTER, useDeliveries } from "./delivery-table.tsx";
import { EndpointStatus } from "./endpoints.tsx";
import { EndpointDialog } from "./endpoint-form.tsx";
import { PURPOSES } from "./event-types.ts";
import { Secret } from "./secret.tsx";
import { shortUrl, type Endpoint } from "./webhooks-data.ts";
import "./webhooks.css";

const BACK = { href: "#/webhooks", label: "Webhooks" };

export function EndpointPage({ params }: PageProps) {
  const api = useApi();
  const id = Number(params.id);
  const data = useData(`webhook endpoint ${id}`, async () =>
    (await unwrap(api.GET("/user/webhook-endpoints/{id}", { params: { path: { id } } }))).data);
  useFocusReload(data.reload);
  if (data.value?.id !== id) {
    return <Page title="Endpoint" back={BACK}><Loaded data={data}>{() => null}</Loaded></Page>;
  }
  return <Opened key={id} data={data} endpoint={data.value} />;
}

function Opened({ data, endpoint }: { data: Data<Endpoint>; endpoint: Endpoint }) {
  const deliveries = useDeliveries({ ...NO_FILTER, endpoint: String(endpoint.id) });
  const reload = (): void => {
    data.reload();
    deliveries.reload();
  };
  return (
    <Page
      title={shortUrl(endpoint.url)} back={BACK}
      actions={<Actions endpoint={endpoint} onChanged={data.set} />}
    >
      <State endpoint={endpoint} />
      <Card>
        <Facts
          rows={[
            ["Status", <EndpointStatus endpoint={endpoint} />],
            ["Sent", PURPOSES[endpoint.purpose]],
            ["Created", <time title={whenExactly(endpoint.created_at)}>{when(endpoint.created_at)}</time>],
            ["Changed", <time title={whenExactly(endpoint.updated_at)}>{when(endpoint.updated_at)}</time>],
          ]}
        />
        <EventList endpoint={endpoint} />
      </Card>
      <Card
        title="Deliveries" class="flush"
        actions={<Button kind="quiet" icon="again" onClick={reload}>Refresh</Button>}
      >
        <DeliveryTable rows={deliveries} isFiltered={false} ofOne />
      </Card>
    </Page>
  );
}

function State({ endpoint }: { endpoint: Endpoint }) {
  const { status, disabled_reason: reason, failing_since: since } = endpoint;
  if (status === "disabled") {
    return (
      <Notice tone="warn">
        It is disabled{reason ? `: ${reason}` : ""}. Events are not sent meanwhile: they are listed
        below as dead, and can be replayed once it is enabled.
      </Notice>
    );
  }
  if (since === null) return null;
  return (
    <Notice tone="warn">
      Deliveries have failed since {whenExactly(since)}. They are tried again; an endpoint that
      fails for days is disabled.
    </Notice>
  );
}

function EventList({ endpoint }: { endpoint: Endpoint }) {
  const { purpose, events, assistant_id: assistant } = endpoint;
  if (purpose !== "account") {
    return (
      <p class="webhooks-note">
        Its URL is set on <a href={`#/assistants/${assistant}`}>the assistant’s page</a>.
      </p>
    );
  }
  return (
    <p class="webhooks-note">
      {events.includes("*")
        ? "Receives all events."
        : <>Receives {events.map((type) => <code key={type} class="webhooks-type">{type}</code>)}</>}
    </p>
  );
}

type Asked = "edit" | "rotate" | "disable" | "delete" | null;

function Actions({ endpoint, onChanged }: {
  endpoint: Endpoint; onChanged(endpoint: Endpoint): void;
}) {
  const api = useApi();
  const toasts = useToasts();
  const { isBusy, run } = useToastedWork();
  const [asked, ask] = useState<Asked>(null);
  const [rotated, setRotated] = useState<Endpoint | null>(null);
  const path = { params: { path: { id: endpoint.id } } };
  const isOwn = endpoint.purpose === "account";
  const turn = async (status: Endpoint["status"]): Promise<void> => {
    const { data } = await unwrap(api.PUT("/user/webhook-endpoints/{id}", { ...path, body: { status } }));
    onChanged(data);
    const isOn = status === "active";
    toasts.notify(isOn ? "Enabled" : "Disabled", () => turn(isOn ? "disabled" : "active"));
  };
  const test = async (): Promise<void> => {
    const { data } = await unwrap(api.POST("/user/webhook-endpoints/{id}/test", path));
    toasts.notify("Test message queued");
    location.hash = `#/webhooks/deliveries/${data.id}`;
  };
  return (
    <>
      {endpoint.status === "active"
        ? <Button needs="build" icon="play" isBusy={isBusy} onClick={() => run(test)}>Send test</Button>
        : (
          <Button kind="main" needs="build" isBusy={isBusy} onClick={() => run(() => turn("active"))}>
            Enable
          </Button>
        )}
      {isOwn && <Button needs="build" onClick={() => ask("edit")}>Edit</Button>}
      <Button needs="build" onClick={() => ask("rotate")}>New secret</Button>
      {endpoint.status === "active" && (
        <Button needs="build" onClick={() => ask("disable")}>Disable</Button>
      )}
      {isOwn && <Button needs="build" onClick={() => ask("delete")}>Delete</Button>}
      {asked === "edit" && (
        <EndpointDialog
          endpoint={endpoint} onClose={() => ask(null)}
          onSaved={(saved) => {
            onChanged(saved);
            ask(null);
            toasts.notify("Saved");
          }}
        />
      )}
      <Questions
        endpoint={endpoint} asked={asked} onClose={() => ask(null)} onDisable={() => turn("disabled")}
        onRotated={(fresh) => {
          onChanged(fresh);
          // Closes the question first, so that the secret's dialog gives the focus back to the same
          // place.
          ask(null);
          setRotated(fresh);
        }}
      />
      {rotated && <Secret endpoint={rotated} isRotated onClose={() => setRotated(null)} />}
    </>
  );
}

function Questions({ endpoint: { id }, asked, onClose, onDisable, onRotated }: {
  endpoint: Endpoint; asked: Asked; onClose(): void; onDisable(): Promise<void>;
  onRotated(endpoint: Endpoint): void;
}) {
  const api = useApi();
  const [, navigate] = useLocation();
  const path = { params: { path: { id } } };
  const remove = async (): Promise<void> => {
    await unwrap(api.DELETE("/user/webhook-endpoints/{id}", path));
    navigate("/webhooks");
  };
  const rotate = async (): Promise<void> =>
    onRotated((await unwrap(api.POST("/user/webhook-endpoints/{id}/rotate-secret", path))).data);
  switch (asked) {
    case "rotate": return (
      <Confirm title="Create a new secret?" action="Create it" onConfirm={rotate} onClose={onClose}>
        For one day messages are signed with both secrets; then the old one is void. Give your
        server the new one by then.
      </Confirm>
    );
    case "disable": return (
      <Confirm
        title="Disable this endpoint?" action="Disable" kind="main" onConfirm={onDisable}
        onClose={onClose}
      >
        Deliveries that are waiting stay waiting. Events in the meantime are not sent later by
        themselves, but you can replay them.
      </Confirm>
    );
    case "delete": return (
      <Confirm title="Delete this endpoint?" action="Delete" onConfirm={remove} onClose={onClose}>
        Its deliveries are deleted too, including those still waiting.
      </Confirm>
    );
    default: return null;
  }
}
