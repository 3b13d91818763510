// The fields of a SIP trunk's form, and which of them are sent.
import type { paths } from "#client/client.ts";
import type { Option } from "#ui/dashboard/kit/controls.tsx";

const PATH = "/user/phone-numbers/sip-trunks";
type Trunks = paths[typeof PATH];
export type Trunk = Trunks["get"]["responses"][200]["content"]["application/json"]["data"][number];
type TrunkBody =
  NonNullable<Trunks["post"]["requestBody"]>["content"]["application/json"];

export interface TrunkForm {
  type: string;
  number: string;
  nickname: string;
  country: string;
  username: string;
  /** Empty while editing: the password stays unchanged. */
  password: string;
  address: string;
  port: number | null;
  transport: string;
  format: string;
  auth: string;
  networks: string;
  isProxy: boolean;
  isSrtpRequired: boolean;
  codecs: string;
}

export const NEW_TRUNK: TrunkForm = {
  type: "number", number: "", nickname: "", country: "US", username: "", password: "",
  address: "", port: null, transport: "udp", format: "+e164", auth: "auth", networks: "",
  isProxy: false,
  isSrtpRequired: false,
  codecs: "pcmu,pcma",
};

export const formOf = (trunk: Trunk): TrunkForm => ({
  type: trunk.sip_trunk_type,
  number: trunk.phone_number,
  nickname: trunk.nickname ?? "",
  country: trunk.country_code,
  username: trunk.sip_username,
  password: "",
  address: trunk.sip_address,
  port: trunk.sip_port,
  transport: trunk.sip_transport,
  format: trunk.sip_calling_format,
  auth: trunk.inbound_authorization_type,
  networks: (trunk.allowed_inbound_ips ?? []).join("\n"),
  isProxy: trunk.outbound_proxy,
  isSrtpRequired: trunk.require_srtp,
  codecs: trunk.sip_codecs.join(","),
});

export const networksOf = (text: string): string[] =>
  text.split(/[\s,]+/).filter((network) => network !== "");

/** All fields; the server validates them. */
export const bodyOf = (form: TrunkForm) => ({
  sip_trunk_type: form.type,
  phone_number: form.number.trim(),
  nickname: form.nickname.trim() || null,
  country_code: form.country,
  sip_username: form.username.trim(),
  ...(form.password === "" ? {} : { sip_password: form.password }),
  sip_address: form.address.trim(),
  sip_port: form.port,
  sip_transport: form.transport,
  sip_calling_format: form.format,
  inbound_authorization_type: form.auth,
  ...(form.auth === "ip" ? { allowed_inbound_ips: networksOf(form.networks) } : {}),
  outbound_proxy: form.isProxy,
  require_srtp: form.isSrtpRequired,
  sip_codecs: form.codecs.split(","),
}) as TrunkBody;

export const TYPES: Option[] = [
  { value: "number", label: "Telephone number" },
  { value: "extension", label: "Extension" },
];
export const TRANSPORTS: Option[] = [
  { value: "udp", label: "UDP" }, { value: "tcp", label: "TCP" }, { value: "tls", label: "TLS" },
];
/** The orders that most trunks need; any other can be set through the API, and is kept. */
const CODEC_CHOICES: Option[] = [
  { value: "pcmu,pcma", label: "Telephone (G.711)" },
  { value: "g722,pcmu,pcma", label: "HD where possible: G.722" },
  { value: "opus,g722,pcmu,pcma", label: "HD where possible: Opus, then G.722" },
];
export const codecChoices = (codecs: string): Option[] =>
  (CODEC_CHOICES.some(({ value }) => value === codecs)
    ? CODEC_CHOICES
    : [...CODEC_CHOICES, { value: codecs, label: codecs.split(",").join(", ") }]);
export const FORMATS: Option[] = [
  { value: "+e164", label: "+4930123456" },
  { value: "e164", label: "4930123456" },
  { value: "national", label: "030123456 (national)" },
];
export const AUTHS: Option[] = [
  { value: "auth", label: "User name and password" },
  { value: "ip", label: "Address it comes from" },
];
