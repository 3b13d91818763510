// The frame around all pages: navigation, the state of the connection, and which page is shown. The
// address behind `#` names it, so that the back button and bookmarks work.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Route, Router, Switch, useLocation } from "wouter-preact";
import { useHashLocation } from "wouter-preact/use-hash-location";
import { LiveProvider, useFreshness } from "./data/live.tsx";
import { RightsContext, useMay } from "./data/rights.tsx";
import {
  askPage, beginningOf, forgetKey, forgetSessions, openApi, rememberedKey, rememberKey,
  SessionContext, unwrap, type Session,
} from "./data/session.tsx";
import { useMe } from "./data/lists.ts";
import { hearTabs, tellTabs } from "./data/tabs.ts";
import { useNow } from "./data/use-now.ts";
import { useDeskCount } from "./data/desk-count.ts";
import { endPush } from "./data/push.ts";
import { useWaiting } from "./data/waiting.ts";
import { forgetAddresses } from "./data/address.ts";
import { entryOf, forgetSeen } from "./data/seen.ts";
import { Button } from "./kit/controls.tsx";
import { ToastProvider, useToastedWork } from "./kit/dialog.tsx";
import { count, money, timeOfDay } from "./kit/format.ts";
import { Icon, type IconName } from "./kit/icons.tsx";
import { Languages } from "./kit/languages.tsx";
import { Empty, Notice, Page } from "./kit/layout.tsx";
import { t } from "./kit/texts.ts";
import { switchTheme } from "./kit/theme.ts";
import { showIn, shownZone } from "./kit/zone.ts";
import { Shortcuts } from "./palette.tsx";
import { Trouble } from "./trouble.tsx";
import { SignIn } from "./sign-in.tsx";
import type { Params } from "./page.ts";
import { ROUTES } from "./routes.ts";

const NAVIGATION: { path: string; label: string; icon: IconName; needs?: string }[] = [
  { path: "/inbox", label: "Inbox", icon: "inbox" },
  { path: "/", label: "Overview", icon: "overview" },
  { path: "/assistants", label: "Assistants", icon: "assistants" },
  { path: "/calls", label: "Calls", icon: "calls" },
  { path: "/conversations", label: "Conversations", icon: "conversations" },
  { path: "/knowledgebases", label: "Knowledge", icon: "knowledge" },
  { path: "/tools", label: "Tools", icon: "tools" },
  { path: "/numbers", label: "Numbers", icon: "numbers" },
  { path: "/campaigns", label: "Campaigns", icon: "campaigns" },
  { path: "/leads", label: "Leads", icon: "leads" },
  { path: "/webhooks", label: "Webhooks", icon: "webhooks" },
  { path: "/money", label: "Money", icon: "money", needs: "money" },
  { path: "/ledger", label: "Ledger", icon: "ledger", needs: "money" },
  { path: "/keys", label: "API keys", icon: "keys", needs: "keys" },
  { path: "/team", label: "Team", icon: "team" },
  { path: "/audit", label: "Audit", icon: "audit", needs: "audit" },
];

/** Null: a member, whose cookie no script reads. */
interface SignedIn {
  apiKey: string | null;
  /**
   * A member's position in the account's stream before anything is loaded; null: unknown, or a key.
   */
  position: string | null;
}

const isJoining = (): boolean => location.hash.startsWith("#/join/");

export function App() {
  const [signedIn, setSignedIn] = useState<SignedIn | null>(() => {
    const key = isJoining() ? null : rememberedKey();
    return key === null ? null : { apiKey: key, position: null };
  });
  const [isOver, setOver] = useState(false);
  const leave = (): void => {
    forgetKey();
    forgetSessions();
    forgetSeen();
    forgetAddresses();
    setOver(false);
    setSignedIn(null);
  };
  const opened = useOpened(signedIn, leave, () => setOver(true));
  const session = useMemo<Session | null>(() => {
    if (opened === null || signedIn === null) return null;
    const { apiKey, position } = signedIn;
    const beginning = async (): Promise<string | null> =>
      apiKey === null ? position : beginningOf(apiKey);
    return { ...opened, apiKey, beginning };
  }, [opened, signedIn]);
  const enterByKey = (given: string, onDevice: boolean): void => {
    rememberKey(given, onDevice);
    setSignedIn({ apiKey: given, position: null });
  };
  const enter = (position: string | null): void => {
    // Somebody who accepts an invitation must not stay signed in with a key of before.
    forgetKey();
    setSignedIn({ apiKey: null, position });
  };
  if (!session) return <SignIn onKey={enterByKey} onMember={enter} />;
  /** Starts over for a different person, who must find nothing of the one before. */
  const anew = (begin: () => void): void => {
    leave();
    setTimeout(begin);
  };
  return (
    <SessionContext.Provider value={session}>
      <LiveProvider>
        <ToastProvider>
          <Router hook={useHashLocation}>
            <Rightful leave={leave}><Frame session={session} /></Rightful>
          </Router>
        </ToastProvider>
      </LiveProvider>
      {isOver && (
        <SignInAgain
          onKey={(given, onDevice) => anew(() => enterByKey(given, onDevice))}
          onMember={async (position) => {
            if (!await isSamePerson(session)) return anew(() => enter(position));
            setOver(false);
            enter(position);
          }}
        />
      )}
    </SessionContext.Provider>
  );
}

/** Stays the same object for the same person, who may have to sign in again in between. */
function useOpened(
  signedIn: SignedIn | null, leave: () => void, over: () => void,
): Pick<Session, "api" | "signOut"> | null {
  const apiKey = signedIn?.apiKey ?? null;
  const isIn = signedIn !== null;
  const isMember = isIn && apiKey === null;
  useEffect(() => {
    if (!isMember) return;
    return hearTabs((who) => {
      const known = knownMember();
      if (who === null || (known !== undefined && known !== who)) leave();
    });
  }, [isMember]);
  return useMemo(() => {
    if (!isIn) return null;
    // A refused key stays refused; a member comes back, to what they typed and have not saved.
    const api = openApi(apiKey, apiKey === null ? over : leave);
    const signOut = async (): Promise<void> => {
      // Signing out goes on even where the push subscription could not be ended.
      await Promise.allSettled([endPush(api)]);
      if (apiKey === null) {
        // The cookie is the server's to take back: without it, a reload would be signed in.
        await askPage("POST", "/auth/logout").catch(() => {
          throw new Error(t("You are still signed in: the server could not be reached. Try again."));
        });
      }
      leave();
      if (apiKey === null) tellTabs(null);
    };
    return { api, signOut };
  }, [isIn, apiKey]);
}

/** Undefined: nobody is signed in, or `/user/me` has not answered yet. */
const knownMember = (): number | undefined =>
  (entryOf("me").value as { user: { id: number } | null } | null)?.user?.id;

/** Whether the person who signed in again is the same as before. Throws where no answer came. */
async function isSamePerson({ api }: Session): Promise<boolean> {
  const before = knownMember();
  const { user } = await unwrap(api.GET("/user/me"));
  return before !== undefined && before === user?.id;
}

/** Covers everything on the page, dialogs too, and loses nothing of it. */
function SignInAgain(props: Omit<Parameters<typeof SignIn>[0], "isAgain">) {
  const element = useRef<HTMLDialogElement>(null);
  const show = (): void => element.current?.showModal();
  useLayoutEffect(() => {
    show();
    return () => element.current?.close();
  }, []);
  return (
    <dialog
      ref={element} class="again" aria-label="Sign in" onClose={show}
      onCancel={(event) => event.preventDefault()}
    >
      <SignIn {...props} isAgain />
    </dialog>
  );
}

function Rightful({ leave, children }: { leave(): void; children: ComponentChildren }) {
  const { value } = useMe();
  const who = value?.user?.id;
  const known = useRef(who);
  // Before paint: nobody sees what was typed by the person before.
  useLayoutEffect(() => {
    if (who === undefined) return;
    // Another tab signed in as somebody else and has not said so yet.
    if (known.current !== undefined && known.current !== who) return leave();
    known.current = who;
    tellTabs(who);
  }, [who]);
  if (value) showIn(value.time_zone);
  // When the zone changes, the times that are already on the page are drawn again.
  return (
    <RightsContext.Provider key={shownZone()} value={value}>{children}</RightsContext.Provider>
  );
}

/**
 * Until the member's rights are known, entries that need one keep their place but are invisible.
 */
function usePages() {
  const may = useMay();
  const { value, error } = useMe();
  const isKnown = value !== null || error !== null;
  return NAVIGATION.filter(({ needs }) => may(needs) === null)
    .map((page) => ({ ...page, isUnseen: !isKnown && page.needs !== undefined }));
}

function Frame({ session }: { session: Session }) {
  const [location] = useLocation();
  const pages = usePages();
  const waiting = useDeskCount();
  const leaving = useToastedWork();
  const [isOpen, setOpen] = useState(false);
  const main = useRef<HTMLElement>(null);
  const isFirst = useRef(true);
  // Before paint: a reader who focuses a field at once keeps the focus.
  useLayoutEffect(() => {
    setOpen(false);
    scrollTo(0, 0);
    // Screen readers start a new page at its heading, as after a link.
    if (!isFirst.current) {
      (main.current?.querySelector("h1") ?? main.current)?.focus({ preventScroll: true });
    }
    isFirst.current = false;
  }, [location]);
  useEffect(() => {
    // Browsers do not report a change of the hash when going back to a page with filters in its
    // address.
    const back = (): void => void dispatchEvent(new HashChangeEvent("hashchange"));
    addEventListener("popstate", back);
    return () => removeEventListener("popstate", back);
  }, []);
  return (
    <div class={`frame ${isOpen ? "open" : ""}`}>
      <a class="skip" href="#main" onClick={(event) => {
        event.preventDefault();
        main.current?.focus();
      }}>Skip to content</a>
      <header class="top">
        <Button
          kind="quiet" icon="menu" label={isOpen ? "Close menu" : "Menu"}
          onClick={() => setOpen(!isOpen)}
        />
        <a class="brand" href="#/"><span class="mark" aria-hidden="true" />Parley</a>
        <Shortcuts pages={pages.filter(({ isUnseen }) => !isUnseen)} />
        <Connection />
        <Balance />
        <Button kind="quiet" icon="sun" label="Light or dark" onClick={switchTheme} />
        <Button
          kind="quiet" icon="out" label="Sign out" isBusy={leaving.isBusy}
          onClick={() => leaving.run(session.signOut)}
        />
      </header>
      <nav class="side" aria-label="Main">
        {pages.map(({ path, label, icon, isUnseen }) => (
          <a
            key={path} href={`#${path}`} class={isUnseen ? "unseen" : undefined}
            aria-current={isAt(location, path) ? "page" : undefined}
          >
            <Icon name={icon} />{label}
            {path === "/inbox" && waiting !== null && (
              <span class="badge warn">{count(waiting)}<span class="hidden-visually"> wait</span></span>
            )}
          </a>
        ))}
        <a class="outside" href="/docs"><Icon name="copy" />For programs</a>
        <Languages />
      </nav>
      <main id="main" ref={main} tabIndex={-1}>
        <Waiting />
        <Trouble />
        <Switch>
          {Object.entries(ROUTES).map(([path, Shown]) => (
            <Route key={path} path={path}>{(params: Params) => <Shown params={params} />}</Route>
          ))}
          <Route><NotFound /></Route>
        </Switch>
      </main>
    </div>
  );
}

const isAt = (location: string, path: string): boolean =>
  path === "/" ? location === "/" : location === path || location.startsWith(`${path}/`);

/** Says whether what is shown may be old, and since when. */
function Connection() {
  const { isLive, lostAt } = useFreshness();
  if (isLive) return (
    <span role="status">
      <a class="connection live" href="#/server" title="The server">Live</a>
    </span>
  );
  return (
    <span class="connection stale" role="status">
      {lostAt ? `Reconnecting… as of ${timeOfDay(lostAt)}` : "Connecting…"}
    </span>
  );
}

/** Says that the page is not broken, and that nobody need do anything. */
function Waiting() {
  const until = useWaiting();
  const now = useNow(until !== null);
  if (until === null) return null;
  // A screen reader reads it out as a whole once, not again with every second.
  const seconds = <span role="timer">{Math.max(1, Math.ceil((until - now) / 1000))}</span>;
  return (
    <div role="status">
      <Notice tone="warn">
        The server received too many requests. This page waits and continues by itself
        in {seconds} s.
      </Notice>
    </div>
  );
}

function Balance() {
  const { value } = useMe();
  const may = useMay();
  if (!value) return null;
  const balance = money(value.total_balance);
  return (
    <>
      {value.user && <a class="you" href="#/team" title={value.user.email}>{value.user.name}</a>}
      {may("money") === null
        ? <a class="balance" href="#/money" title="Balance">{balance}</a>
        : <span class="balance" title="Balance">{balance}</span>}
    </>
  );
}

function NotFound() {
  return (
    <Page title="Not found">
      <Empty icon="search" title="There is no such page."><a href="#/">Overview</a></Empty>
    </Page>
  );
}
