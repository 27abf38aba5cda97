/** The whole page: signing in, the sidebar, and the page that the address names. */
import { QueryClientProvider, useQuery, useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useCallback, useEffect, useMemo, useRef, useState } from "react";
import * as calls from "../api/calls";
import { ApiError } from "../api/errors";
import { onSignedOut } from "../api/http";
import { createQueryClient } from "../api/queryClient";
import type { Me } from "../api/types";
import { Home } from "../home/Home";
import { closeImportDialog, shownImport } from "../imports/importDialog";
import { closeModelDialog, closePalette, closeShareDialog, isPaletteOpen, modelToChoose, sessionToShare } from "../layout/dialogs";
import { focusContent, TEMPORARY_PATH } from "../layout/focus";
import { SidebarButtons } from "../layout/SidebarButtons";
import { isNarrow, isSidebarShown, toggleSidebar } from "../layout/sidebarVisibility";
import { watchAccount } from "../lib/accountWatch";
import { useDocumentTitle } from "../lib/documentTitle";
import { lazyWithPreload } from "../lib/lazyWithPreload";
import { forgetPerson } from "../lib/personal";
import { getLocation, navigate, parseSessionLocation, useLocation } from "../lib/router";
import { useStore } from "../lib/store";
import { AccountContext, LiveClientContext, useMe, type Account } from "../live/context";
import { LiveClient } from "../live/liveClient";
import { AnswerNotifier } from "../notifications/AnswerNotifier";
import { Sidebar } from "../sidebar/Sidebar";
import { ConfirmDialog } from "../ui/ConfirmDialog";
import { DialogLoadError, ErrorBoundary, LoadError } from "../ui/ErrorBoundary";
import { Link } from "../ui/Link";
import { Toasts } from "../ui/toasts";
import { words } from "../words";
import { AccountMenu } from "./AccountMenu";
import { ConnectionStatus } from "./ConnectionStatus";
import { getPanelsFor, type Panel } from "./panels";
import { ShortcutsDialog, useShortcuts } from "./Shortcuts";
import { useExportDrops } from "./useExportDrops";
import { useLeaveWarning } from "./useLeaveWarning";
import "./App.css";

const ConversationPage = lazyWithPreload(() => import("../conversation/ConversationPage"));
const TemporaryPage = lazyWithPreload(() => import("../conversation/temporary/TemporaryPage"));
const Palette = lazyWithPreload(() => import("../palette/Palette"));
const ShareDialog = lazy(() => import("../panels/sharing/ShareDialog"));
const ImportDialog = lazy(() => import("../panels/imports/ImportDialog"));
const ModelDialog = lazy(() => import("../agent/ModelDialog"));
const SharedPage = lazy(() => import("../panels/sharing/SharedPage"));
const SetupSteps = lazy(() => import("../panels/setup/SetupSteps"));
const SignIn = lazy(() => import("../sign-in/SignIn"));
const Welcome = lazy(() => import("../sign-in/Welcome"));

const SIGN_IN_PATH = "sign-in";
const SHARED_PATH = "shared";
const PRELOAD_DELAY_MS = 200;
const RETRY_DELAY_MS = 1500;
const SETUP_STEP_COUNT = 2; // once an owner has skipped all of them, they are not even loaded

export function App() {
  return useLocation().path === SHARED_PATH ? (
    <Suspense>
      <SharedPage />
    </Suspense>
  ) : (
    <SignedInPages />
  );
}

/** Everything except shared copies: people have to sign in for it. */
function SignedInPages() {
  const queryClient = useQueryClient();
  const { path } = useLocation();
  const [isLinkPending, setLinkPending] = useState(() => path === SIGN_IN_PATH && getLocation().hash !== "");
  const {
    data: me,
    error,
    refetch,
  } = useQuery<Me | null>({
    queryKey: ["me"],
    queryFn: calls.getMe,
    staleTime: Infinity,
    retry: (_, cause) => !(cause instanceof ApiError),
    retryDelay: RETRY_DELAY_MS,
    enabled: !isLinkPending, // first the link has to sign the person in
  });

  useEffect(() => onSignedOut(() => queryClient.setQueryData(["me"], null)), [queryClient]);

  useEffect(() => {
    if (me != null && path === SIGN_IN_PATH) navigate("", { replace: true });
  }, [me, path]);

  const personId = me === null ? null : me?.person.id; // undefined: not known yet
  useEffect(() => (personId === undefined ? undefined : watchAccount(personId, reloadForOtherPerson)), [personId]);

  const handleSignIn = useCallback(() => {
    setLinkPending(false);
    void refetch();
  }, [refetch]);

  const handleRejectedLink = useCallback(() => void refetch(), [refetch]);

  if (me?.needs_welcome) {
    return (
      <Suspense>
        <Welcome me={me} refetch={refetch} />
      </Suspense>
    );
  }
  if (me != null) return <SignedIn key={me.person.id} me={me} refetch={refetch} />;
  if (error instanceof ApiError || me === null || isLinkPending) {
    return (
      <Suspense>
        <SignIn onDone={handleSignIn} onLinkRejected={handleRejectedLink} />
      </Suspense>
    );
  }
  return <div className="page-loading" role="status" aria-label={words.loading} />;
}

/** Reloads without a question: another person is signed in now, and nothing of this one may remain. */
function reloadForOtherPerson(): void {
  forgetPerson();
  location.reload();
}

/** Everything below is created again for the next person who signs in, so that nothing of the previous person remains. */
function SignedIn({ me, refetch }: Account) {
  const [client] = useState(() => new LiveClient(me.person.id));
  const [queryClient] = useState(createQueryClient);
  const account = useMemo(() => ({ me, refetch }), [me, refetch]);
  useEffect(() => client.start(), [client]);
  useEffect(() => forgetPerson, []);
  useEffect(() => {
    client.onSessionCreated((entry, sessionId) => {
      if (entry.session !== sessionId && getLocation().path === entry.session) navigate(sessionId);
    });
  }, [client]);
  return (
    <QueryClientProvider client={queryClient}>
      <AccountContext value={account}>
        <LiveClientContext value={client}>
          <Frame />
        </LiveClientContext>
      </AccountContext>
    </QueryClientProvider>
  );
}

function Frame() {
  const isSidebarVisible = useStore(isSidebarShown);
  const isPageCovered = useStore(isNarrow) && isSidebarVisible;
  const isPaletteShown = useStore(isPaletteOpen);
  const sharedId = useStore(sessionToShare);
  const modelChoice = useStore(modelToChoose);
  const importToShow = useStore(shownImport);
  const me = useMe();
  const panels = useMemo(() => getPanelsFor(me), [me]);
  const { path } = useLocation();
  const listedIds = useRef<readonly string[]>([]);
  const onOrder = useCallback((ids: readonly string[]) => {
    listedIds.current = ids;
  }, []);
  useEffect(() => {
    const timer = setTimeout(() => {
      Palette.preload();
      if (path === "") ConversationPage.preload(); // the next thing that people see here; elsewhere they reach for the sidebar first
    }, PRELOAD_DELAY_MS);
    return () => clearTimeout(timer);
  }, [path]);
  useExportDrops();
  useLeaveWarning();
  useShortcuts(useCallback(() => listedIds.current, []));
  return (
    <div className="frame" data-sidebar={isSidebarVisible}>
      <a className="skip-link" href="#main" onClick={skipToContent}>
        {words.skipToContent}
      </a>
      {isSidebarVisible && <Sidebar accountMenu={<AccountMenu panels={panels} />} onOrder={onOrder} onReach={ConversationPage.preload} />}
      {isSidebarVisible && (
        <button type="button" className="sidebar-backdrop" tabIndex={-1} aria-hidden="true" onClick={toggleSidebar} />
      )}
      <main id="main" className="main" tabIndex={-1} inert={isPageCovered}>
        <ConnectionStatus />
        <ErrorBoundary resetKey={path} fallback={<PageLoadError />}>
          <Suspense fallback={<div className="page-loading" />}>
            <Page panels={panels} />
          </Suspense>
        </ErrorBoundary>
      </main>
      <AnswerNotifier />
      <Toasts />
      <ConfirmDialog />
      <ShortcutsDialog />
      {isPaletteShown && (
        <ErrorBoundary fallback={<DialogLoadError close={closePalette} />}>
          <Suspense>
            <Palette panels={panels} />
          </Suspense>
        </ErrorBoundary>
      )}
      {sharedId !== null && (
        <ErrorBoundary fallback={<DialogLoadError close={closeShareDialog} />}>
          <Suspense>
            <ShareDialog sessionId={sharedId} />
          </Suspense>
        </ErrorBoundary>
      )}
      {modelChoice !== null && (
        <ErrorBoundary fallback={<DialogLoadError close={closeModelDialog} />}>
          <Suspense>
            <ModelDialog choice={modelChoice} />
          </Suspense>
        </ErrorBoundary>
      )}
      {importToShow !== null && (
        <ErrorBoundary fallback={<DialogLoadError close={closeImportDialog} />}>
          <Suspense>
            <ImportDialog shown={importToShow} />
          </Suspense>
        </ErrorBoundary>
      )}
    </div>
  );
}

/** With the button for the sidebar, which leads to other pages and may be hidden. */
function PageLoadError() {
  return (
    <section className="conversation">
      <header className="bar plain">
        <SidebarButtons />
      </header>
      <LoadError />
    </section>
  );
}

/** An address that leads nowhere, or to a panel of owners. */
function UnknownPage() {
  useDocumentTitle(words.pageNotFound);
  return (
    <section className="conversation">
      <header className="bar plain">
        <SidebarButtons />
      </header>
      <div className="empty-page">
        <h1>{words.pageNotFound}</h1>
        <p>{words.pageNotFoundHint}</p>
        <Link to="" className="button">
          {words.goHome}
        </Link>
      </div>
    </section>
  );
}

function Page({ panels }: { panels: readonly Panel[] }) {
  const location = useLocation();
  const session = parseSessionLocation(location);
  const panel = panels.find(({ path }) => path === location.path);
  if (session !== null) return <ConversationPage id={session.id} seq={session.seq} />;
  if (panel !== undefined) return <panel.page />;
  if (location.path === TEMPORARY_PATH) return <TemporaryPage />;
  return location.path === "" || location.path === SIGN_IN_PATH ? <Home setup={<Setup />} /> : <UnknownPage />;
}

/** Nothing keeps people from writing: without these steps, and also if they fail to load, the start page works. */
function Setup() {
  const { person, skipped_steps: skipped } = useMe();
  if (person.role !== "owner" || skipped.length === SETUP_STEP_COUNT) return null;
  return (
    <ErrorBoundary fallback={null}>
      <Suspense>
        <SetupSteps />
      </Suspense>
    </ErrorBoundary>
  );
}

function skipToContent(event: React.MouseEvent): void {
  event.preventDefault();
  focusContent();
}
