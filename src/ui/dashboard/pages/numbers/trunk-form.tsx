// The form of a new or existing SIP trunk.
import { useState } from "preact/hooks";
import { useEdited } from "#ui/dashboard/data/meanwhile.ts";
import { fieldErrors, unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { Form, NumberField, SelectField, TextArea, TextField, Toggle } from "#ui/dashboard/kit/controls.tsx";
import { Dialog, useToasts } from "#ui/dashboard/kit/dialog.tsx";
import { formatPhone } from "#ui/dashboard/pages/phone.ts";
import { ALL_OPTIONS } from "./countries.ts";
import {
  AUTHS, bodyOf, codecChoices, formOf, FORMATS, networksOf, NEW_TRUNK, TRANSPORTS, TYPES,
  type Trunk, type TrunkForm,
} from "./trunk-fields.ts";

interface PartProps {
  form: TrunkForm;
  errors: Record<string, string>;
  set(part: Partial<TrunkForm>): void;
}

export function TrunkDialog({ trunk, onSaved, onClose }: {
  trunk: Trunk | null; onSaved(): void; onClose(): void;
}) {
  const api = useApi();
  const toasts = useToasts();
  const edited = useEdited(() => trunk ? formOf(trunk) : NEW_TRUNK, bodyOf);
  const { fields: form, set } = edited;
  const [error, setError] = useState<unknown>(null);
  const errors = fieldErrors(error);
  const change = async (id: number) => {
    const params = { path: { id } };
    const { data } =
      await unwrap(api.GET("/user/phone-numbers/sip-trunks/{id}", { params }));
    const body = bodyOf(edited.onto(formOf(data)));
    return unwrap(api.PUT("/user/phone-numbers/sip-trunks/{id}", { params, body }));
  };
  const save = async (): Promise<void> => {
    const { message } = trunk
      ? await change(trunk.id)
      : await unwrap(api.POST("/user/phone-numbers/sip-trunks", { body: bodyOf(form) }));
    toasts.notify(message);
    onSaved();
    onClose();
  };
  const part = { form, errors, set };
  return (
    <Dialog title={trunk ? formatPhone(trunk.phone_number) : "New SIP trunk"} isWide onClose={onClose}>
      <Form
        submit={trunk ? "Save" : "Create"} needs="buy" error={error} onError={setError}
        onSubmit={save} onCancel={onClose}
      >
        <NumberPart {...part} />
        <ServerPart {...part} isNew={trunk === null} />
        <InboundPart {...part} />
      </Form>
    </Dialog>
  );
}

function NumberPart({ form, errors, set }: PartProps) {
  return (
    <div class="form-row">
      <SelectField
        label="What it is" value={form.type} options={TYPES} onInput={(type) => set({ type })}
        error={errors.sip_trunk_type}
      />
      <TextField
        label={form.type === "number" ? "Number" : "Extension"} required value={form.number}
        onInput={(number) => set({ number })} autoComplete="off" maxLength={32}
        placeholder={form.type === "number" ? "+4930901820" : "100"} error={errors.phone_number}
      />
      <SelectField
        label="Country" value={form.country} options={ALL_OPTIONS}
        onInput={(country) => set({ country })} error={errors.country_code}
      />
      <TextField
        label="Name" value={form.nickname} onInput={(nickname) => set({ nickname })} maxLength={50}
        autoComplete="off" error={errors.nickname}
      />
    </div>
  );
}

function ServerPart({ form, errors, set, isNew }: PartProps & { isNew: boolean }) {
  return (
    <>
      <div class="form-row">
        <TextField
          label="Server" required value={form.address} onInput={(address) => set({ address })}
          placeholder="sip.example.com" hint="Host name or IP address, without a port"
          autoComplete="off" error={errors.sip_address}
        />
        <SelectField
          label="Transport" value={form.transport} options={TRANSPORTS}
          onInput={(transport) => set({ transport })} error={errors.sip_transport}
        />
        <NumberField
          label="Port" value={form.port} min={1} max={65_535} onInput={(port) => set({ port })}
          hint="Empty: as DNS says" error={errors.sip_port}
        />
      </div>
      <div class="form-row">
        <TextField
          label="User name" required value={form.username} maxLength={128}
          onInput={(username) => set({ username })} autoComplete="off" error={errors.sip_username}
        />
        <TextField
          label="Password" type="password" required={isNew} value={form.password}
          onInput={(password) => set({ password })} maxLength={256} autoComplete="new-password"
          hint={isNew ? "Never shown again" : "Empty: stays as it is"} error={errors.sip_password}
        />
        <SelectField
          label="How it dials" value={form.format} options={FORMATS}
          onInput={(format) => set({ format })} error={errors.sip_calling_format}
        />
      </div>
      <SelectField
        label="Sound" value={form.codecs} options={codecChoices(form.codecs)}
        hint="HD is clearer and better understood, if the telephone system supports it too"
        onInput={(codecs) => set({ codecs })} error={errors.sip_codecs}
      />
      <Toggle
        label="The server is an outbound proxy" value={form.isProxy}
        hint="Keeps the domain of a user name like user@domain" error={errors.outbound_proxy}
        onInput={(isProxy) => set({ isProxy })}
      />
      <Toggle
        label="Only encrypted audio (SRTP)" value={form.isSrtpRequired}
        hint="Calls in the clear are refused; use it with TLS, which keeps the keys secret"
        error={errors.require_srtp} onInput={(isSrtpRequired) => set({ isSrtpRequired })}
      />
    </>
  );
}

/** The server names a network by its place (`allowed_inbound_ips.0`): this shows the network. */
function networksError({ form, errors }: PartProps): string | undefined {
  const [field, text] = Object.entries(errors)
    .find(([name]) => name.startsWith("allowed_inbound_ips")) ?? [];
  const at = field?.split(".")[1];
  return at === undefined ? text : `${networksOf(form.networks)[Number(at)] ?? ""}: ${text ?? ""}`;
}

function InboundPart(props: PartProps) {
  const { form, errors, set } = props;
  return (
    <>
      <SelectField
        label="Recognise inbound calls by" value={form.auth} options={AUTHS}
        onInput={(auth) => set({ auth })} error={errors.inbound_authorization_type}
      />
      {form.auth === "ip" && (
        <TextArea
          label="Allowed addresses" rows={3} value={form.networks}
          onInput={(networks) => set({ networks })} placeholder={"192.0.2.10\n198.51.100.0/24"}
          hint="Addresses or networks, one per line" error={networksError(props)}
        />
      )}
    </>
  );
}
