// Signing in: as a member by e-mail and password or at the OpenID provider, or with an API key; and
// accepting an invitation. The hashes `#/sign-in/` and `#/join/` are read here.
import { useEffect, useState } from "preact/hooks";
import { ParleyError } from "#client/client.ts";
import { Button, Form, TextField, Toggle } from "./kit/controls.tsx";
import { inTab } from "./kit/kept.ts";
import { words } from "./kit/format.ts";
import { Languages } from "./kit/languages.tsx";
import { Failure, Notice, Skeleton } from "./kit/layout.tsx";
import { commandOf } from "./kit/texts.ts";
import { askPage, fieldErrors, openApi, unwrap } from "./data/session.tsx";

const KEY_HINT = (
  <>The server prints one at its first start; <code>{commandOf("key create")}</code> makes more.</>
);

const REFUSALS: Record<string, string> = {
  oidc_failed: "Signing in elsewhere did not work. Try again.",
  oidc_cancelled: "Signing in elsewhere was cancelled or denied there.",
  oidc_unknown: "You are not a member here. Ask for an invitation.",
  oidc_unverified: "Your e-mail address is not verified there.",
};

interface State {
  signed_in: boolean;
  /** False: nobody could sign in by e-mail. */
  has_members: boolean;
  oidc: { name: string } | null;
  /** Where the account's stream is; null: nobody is signed in. */
  position: string | null;
}

interface Props {
  onKey(key: string, onDevice: boolean): void;
  /** `position`: of the account's stream, before anything is loaded. */
  onMember(position: string | null): void | Promise<void>;
  /** A session has expired under a page that waits for the same person to sign in again. */
  isAgain?: boolean;
}

/** Cookies are blocked, or the session cookie is for https only. */
const NO_COOKIE = "The browser kept no cookie. Allow cookies for this site, open it by https where it has that, or use an API key.";

/** The page that somebody wanted: the OpenID provider sends them back to the start page. */
const PLACE = "parley-place";

const askState = (): Promise<State> => askPage<State>("GET", "/auth");

const placeOf = (hash: string): [string, string] => {
  const [, kind = "", rest = ""] = /^#\/(sign-in|join)\/(.+)$/.exec(hash) ?? [];
  return [kind, rest];
};

export function SignIn({ onKey, onMember, isAgain = false }: Props) {
  const [[kind, rest]] = useState(() => placeOf(location.hash));
  const [state, setState] = useState<State | null>(null);
  const [error, setError] = useState<unknown>(null);
  const enter = (position: string | null): void | Promise<void> => {
    const place = inTab.getItem(PLACE);
    inTab.removeItem(PLACE);
    const isBack = Boolean(place) && location.hash === "";
    // The addresses of invitations and refusals are not worth coming back to.
    if (isBack || kind !== "") history.replaceState(null, "", place || "#/");
    return onMember(position);
  };
  const keepPlace = (): void => {
    if (kind === "") inTab.setItem(PLACE, location.search + location.hash);
  };
  const enterNow = async (): Promise<void> => {
    const found = await askState().catch(() => null);
    if (found?.signed_in === false) throw new Error(NO_COOKIE);
    await enter(found?.position ?? null);
  };
  const look = (): void => {
    setError(null);
    askState().then((found) => {
      if (found.signed_in && kind !== "join") return enter(found.position);
      setState(found);
    }).catch(setError);
  };
  useEffect(look, []);
  return (
    <main class="sign-in">
      <div class="card">
        <h1><span class="mark" aria-hidden="true" />Parley</h1>
        <p>Assistants that talk with people: in text and on calls.</p>
        {kind === "sign-in" && <Notice tone="bad">{REFUSALS[rest] ?? "Sign in again."}</Notice>}
        {isAgain && (
          <Notice tone="warn">
            Your session is over. Sign in again to continue: what you have typed is still there.
          </Notice>
        )}
        {state === null
          ? error ? <Failure error={error} retry={look} /> : <Skeleton lines={3} />
          : kind === "join"
            ? <Join token={rest} onMember={enterNow} />
            : <Ways state={state} onKey={onKey} onMember={enterNow} leave={keepPlace} />}
      </div>
      {/* Both would leave what is typed on the page. */}
      {!isAgain && <p class="links"><a href="/docs">For programs</a><Languages /></p>}
    </main>
  );
}

interface Entered {
  onMember(): Promise<void>;
}

interface WaysProps extends Pick<Props, "onKey">, Entered {
  state: State;
  /** Called before the OpenID provider's page replaces this one. */
  leave(): void;
}

function Ways({ state, onKey, onMember, leave }: WaysProps) {
  const { oidc } = state;
  const [isKey, setKey] = useState(!state.has_members && !oidc);
  return (
    <>
      {isKey ? <KeyForm onKey={onKey} /> : <PasswordForm onMember={onMember} />}
      {oidc && (
        <a class="button plain" href="/api/auth/oidc" onClick={leave}>Sign in with {oidc.name}</a>
      )}
      <Button kind="quiet" onClick={() => setKey(!isKey)}>
        {isKey ? "Use e-mail and password instead" : "Use an API key instead"}
      </Button>
    </>
  );
}

function PasswordForm({ onMember }: Entered) {
  const [email, setEmail] = useState("");
  const [password, setPassword] = useState("");
  const [onDevice, setOnDevice] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const submit = async (): Promise<void> => {
    await askPage("POST", "/auth/login", { email, password, remember: onDevice });
    await onMember();
  };
  return (
    <Form submit="Sign in" onSubmit={submit} error={error} onError={setError}>
      <TextField
        label="E-mail" type="email" value={email} onInput={setEmail} required
        autoComplete="username"
      />
      <TextField
        label="Password" type="password" value={password} onInput={setPassword} required
        autoComplete="current-password"
      />
      <Toggle label="Stay signed in on this device" value={onDevice} onInput={setOnDevice} />
    </Form>
  );
}

function KeyForm({ onKey }: Pick<Props, "onKey">) {
  const [key, setKey] = useState("");
  const [onDevice, setOnDevice] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const submit = async (): Promise<void> => {
    const given = key.trim();
    await unwrap(openApi(given).GET("/user/me"));
    onKey(given, onDevice);
  };
  return (
    <Form submit="Sign in" onSubmit={submit} error={error} onError={setError}>
      <TextField
        label="API key" type="password" value={key} onInput={setKey} required
        autoComplete="off" hint={KEY_HINT}
      />
      <Toggle label="Stay signed in on this device" value={onDevice} onInput={setOnDevice} />
    </Form>
  );
}

interface Invited {
  email: string;
  role: string;
  account: string;
  invited_by: string;
  is_reset: boolean;
}

/** The server does not know the link, or it is malformed; other errors say nothing about it. */
const isGone = (error: unknown): boolean =>
  error instanceof ParleyError && [404, 422].includes(error.status);

function Join({ token, onMember }: { token: string } & Entered) {
  const [invited, setInvited] = useState<Invited | null>(null);
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const [error, setError] = useState<unknown>(null);
  const errors = fieldErrors(error);
  const look = (): void => {
    setError(null);
    askPage<Invited>("POST", "/auth/invitation", { token }).then(setInvited, setError);
  };
  useEffect(look, [token]);
  if (!invited) {
    if (!error) return <Skeleton lines={3} />;
    return isGone(error)
      ? <Notice tone="bad">This link was used, withdrawn or has expired.</Notice>
      : <Failure error={error} retry={look} />;
  }
  const submit = async (): Promise<void> => {
    const given = invited.is_reset ? invited.email : name.trim();
    await askPage("POST", "/auth/join", { token, name: given, password });
    await onMember();
  };
  return (
    <Form
      submit={invited.is_reset ? "Set password" : "Join"} onSubmit={submit}
      error={error} onError={setError}
    >
      <p>
        {invited.is_reset
          ? <>A new password for <strong>{invited.email}</strong>.</>
          : (
            <>
              {invited.invited_by} invites <strong>{invited.email}</strong> to {invited.account} as
              {" "}{words(invited.role)}.
            </>
          )}
      </p>
      {!invited.is_reset && (
        <TextField
          label="Your name" value={name} onInput={setName} required maxLength={100}
          autoComplete="name" hint="Visitors see it when you answer." error={errors.name}
        />
      )}
      <TextField
        label="Password" type="password" value={password} onInput={setPassword} required
        maxLength={256} autoComplete="new-password" hint="At least 10 characters."
        error={errors.password}
      />
    </Form>
  );
}
