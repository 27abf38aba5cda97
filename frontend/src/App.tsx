/** The whole page: who is there, the list beside, and what was chosen from it. */
import { QueryClientProvider, useQuery, useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { ApiError, onSignedOut } from "./api/client";
import * as calls from "./api/calls";
import type { Me } from "./api/types";
import { Home } from "./home/Home";
import { lazily } from "./lib/lazily";
import { beOneself } from "./lib/oneself";
import { newQueries } from "./lib/queries";
import { go, sessionAt, useHere, whereWeAre } from "./lib/router";
import { useStore } from "./lib/store";
import { Center } from "./live/center";
import { CenterContext, MyselfContext, useMe, type Myself } from "./live/context";
import { closePalette, paletteOpen } from "./palette/open";
import { closeSharing, sharing } from "./panels/sharing/open";
import { Ready } from "./ready/Ready";
import { panelsFor } from "./routes";
import { ConnectionSign } from "./shell/ConnectionSign";
import { isNarrow, sidebarShown, toggleSidebar } from "./shell/layout";
import { MenuButton } from "./shell/MenuButton";
import { ShortcutList, useShortcuts } from "./shell/Shortcuts";
import { useStrayFiles } from "./shell/useStrayFiles";
import { chooseView, CURRENT } from "./sidebar/chosen";
import { Sidebar } from "./sidebar/Sidebar";
import { Boundary, NotOpened, NotShown } from "./ui/Boundary";
import { Confirmation } from "./ui/confirm";
import { Toasts } from "./ui/toasts";
import { words } from "./words";

const ConversationPage = lazily(() => import("./conversation/ConversationPage"));
const Palette = lazily(() => import("./palette/Palette"));
const ShareDialog = lazy(() => import("./panels/sharing/ShareDialog"));
const SharedPage = lazy(() => import("./panels/sharing/SharedPage"));
const SignIn = lazy(() => import("./sign-in/SignIn"));

const SIGN_IN = "sign-in";
const SHARED = "shared";
const SOON = 200; // milliseconds after which what is wanted next is fetched
const itself = <T,>(value: T) => value;

export function App() {
  return useHere().step === SHARED ? (
    <Suspense>
      <SharedPage />
    </Suspense>
  ) : (
    <OwnPages />
  );
}

/** What is shown to whoever signs in. */
function OwnPages() {
  const client = useQueryClient();
  const { step } = useHere();
  const [isLinkWaiting, setLinkWaiting] = useState(() => step === SIGN_IN && whereWeAre().hash !== "");
  const { data: me, error, refetch } = useQuery<Me | null>({
    queryKey: ["me"],
    queryFn: calls.me,
    staleTime: Infinity,
    retry: (_, failure) => !(failure instanceof ApiError),
    retryDelay: 1500,
    enabled: !isLinkWaiting, // a link signs in first
  });

  useEffect(() => onSignedOut(() => client.setQueryData(["me"], null)), [client]);

  useEffect(() => {
    if (me != null && step === SIGN_IN) go("", { replace: true });
  }, [me, step]);

  const person = me === null ? null : me?.person.id;
  useEffect(() => (person === undefined ? undefined : beOneself(person)), [person]);

  const signedIn = useCallback(() => {
    setLinkWaiting(false);
    void refetch();
  }, [refetch]);

  const askAgain = useCallback(() => void refetch(), [refetch]);

  if (me != null) return <SignedIn key={me.person.id} me={me} again={refetch} />;
  if (error instanceof ApiError || me === null || isLinkWaiting) {
    return (
      <Suspense>
        <SignIn onDone={signedIn} onLinkRefused={askAgain} />
      </Suspense>
    );
  }
  return <div className="starting" role="status" aria-label={words.loading} />;
}

/** What stands below is made anew for whoever signs in next: nothing that one has seen is left for another. */
function SignedIn({ me, again }: Myself) {
  const [center] = useState(() => new Center(me.person.id));
  const [queries] = useState(newQueries);
  const myself = useMemo(() => ({ me, again }), [me, again]);
  useEffect(() => center.start(), [center]);
  useEffect(() => {
    const timer = setTimeout(() => [ConversationPage, Palette].forEach((part) => part.fetch()), SOON);
    return () => clearTimeout(timer);
  }, []);
  useEffect(() => closeAll, []);
  useEffect(() => {
    center.onBegun((entry, session) => {
      if (entry.session !== session && whereWeAre().step === entry.session) go(session);
    });
  }, [center]);
  return (
    <QueryClientProvider client={queries}>
      <MyselfContext value={myself}>
        <CenterContext value={center}>
          <Frame />
        </CenterContext>
      </MyselfContext>
    </QueryClientProvider>
  );
}

function closeAll(): void {
  chooseView(CURRENT);
  closePalette();
  closeSharing();
}

function Frame() {
  const isSidebarShown = useStore(sidebarShown, itself);
  const isAbove = useStore(isNarrow, itself) && isSidebarShown;
  const isPaletteOpen = useStore(paletteOpen, itself);
  const shared = useStore(sharing, itself);
  const { step } = useHere();
  const order = useRef<readonly string[]>([]);
  const onOrder = useCallback((ids: readonly string[]) => {
    order.current = ids;
  }, []);
  useStrayFiles();
  useShortcuts(useCallback(() => order.current, []));
  return (
    <div className="frame" data-sidebar={isSidebarShown}>
      <a className="skip" href="#composer" onClick={skip}>
        {words.skipToConversation}
      </a>
      {isSidebarShown && <Sidebar onOrder={onOrder} />}
      {isSidebarShown && <button type="button" className="shade" tabIndex={-1} aria-hidden="true" onClick={toggleSidebar} />}
      <main className="main" inert={isAbove}>
        <ConnectionSign />
        <Boundary place={step} instead={<PageNotShown />}>
          <Suspense fallback={<div className="starting" />}>
            <Page />
          </Suspense>
        </Boundary>
      </main>
      <Ready />
      <Toasts />
      <Confirmation />
      <ShortcutList />
      {isPaletteOpen && (
        <Boundary instead={<NotOpened close={closePalette} />}>
          <Suspense>
            <Palette />
          </Suspense>
        </Boundary>
      )}
      {shared !== null && (
        <Boundary instead={<NotOpened close={closeSharing} />}>
          <Suspense>
            <ShareDialog session={shared} />
          </Suspense>
        </Boundary>
      )}
    </div>
  );
}

/** With the way to other pages, which is hidden on a narrow screen. */
function PageNotShown() {
  return (
    <section className="conversation">
      <header className="bar plain">
        <MenuButton />
      </header>
      <NotShown />
    </section>
  );
}

function Page() {
  const me = useMe();
  const here = useHere();
  const at = sessionAt(here);
  const panel = panelsFor(me).find((each) => each.step === here.step);
  if (at !== null) return <ConversationPage id={at.id} seq={at.seq} />;
  return panel === undefined ? <Home /> : <panel.page />;
}

function skip(event: React.MouseEvent): void {
  event.preventDefault();
  document.getElementById("composer")?.focus();
}
