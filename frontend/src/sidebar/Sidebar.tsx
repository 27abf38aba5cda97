/** The sidebar: search, projects, the list of conversations and the account menu. */
import { useEffect, type ReactNode } from "react";
import { focusContent, focusSearch, openTemporaryConversation, SEARCH_ID, startConversation } from "../layout/focus";
import { TOGGLE_ID, toggleSidebar } from "../layout/sidebarVisibility";
import { useStore } from "../lib/store";
import { useLiveClient, useMe } from "../live/context";
import { ACTIVE_VIEW, ARCHIVE_VIEW } from "../live/listViews";
import { selectedView, selectView } from "../sessions/selectedView";
import { temporaryChat } from "../temporary/temporaryChat";
import { ArchiveIcon, CloseIcon, DoubleBubbleIcon, MenuIcon, PlusIcon, TemporaryIcon } from "../ui/icons";
import { SearchField } from "../ui/SearchField";
import { words } from "../words";
import { FilterChips } from "./FilterChips";
import { Projects } from "./Projects";
import { SearchFilterFields } from "./SearchFilterFields";
import { countFilters } from "./searchFilters";
import { buildResultId, RESULTS_ID, SearchResults } from "./SearchResults";
import { SelectionBar } from "./SelectionBar";
import { SessionList } from "./SessionList";
import { useResultKeys } from "./useResultKeys";
import { useSearch } from "./useSearch";
import { useSearchResults } from "./useSearchResults";
import { useSelection } from "./useSelection";
import "./Sidebar.css";

interface Props {
  accountMenu: ReactNode;
  onOrder: (ids: readonly string[]) => void; // called with the listed conversations, in their order
  onReach: () => void; // called when the pointer moves here or the focus comes: a conversation may be opened next
}

export function Sidebar({ accountMenu, onOrder, onReach }: Props) {
  const view = useStore(selectedView);
  const { search, setText, setFilters } = useSearch();
  const { text: query, filters } = search;
  const results = useSearchResults(search);
  const resultCount = results.sessions.length + results.hits.length;
  const keys = useResultKeys(query.trim(), resultCount, results.isDone, openResult, focusContent);
  const isSearching = query.trim() !== "" || countFilters(filters) > 0;
  const selection = useSelection();
  const { end } = selection;
  const showsAll = useStore(useLiveClient().showsAll);
  useEffect(() => end, [view, showsAll, end]); // a selection ends when the list changes
  const isOwner = useMe().person.role === "owner";
  return (
    <nav
      className="sidebar"
      aria-label={words.conversations}
      onPointerMove={onReach}
      onFocus={onReach}
      onKeyDown={(event) => {
        const isInSearch = isSearching && event.currentTarget.contains(event.target as Node) && (event.target as Element).id !== SEARCH_ID;
        if (event.key !== "Escape" || event.shiftKey || !isInSearch) return;
        event.stopPropagation(); // on a phone, it would hide the sidebar
        focusSearch();
      }}
    >
      <div className="sidebar-head">
        <span className="brand">Palaver</span>
        <span className="spacer" />
        <button
          id={TOGGLE_ID}
          type="button"
          className="icon-button"
          title={words.hideSidebar}
          aria-label={words.hideSidebar}
          onClick={toggleSidebar}
        >
          <MenuIcon />
        </button>
      </div>
      <div className="new-buttons">
        <button type="button" className="button primary wide" onClick={startConversation}>
          <PlusIcon />
          {words.newConversation}
        </button>
        <TemporaryButton />
      </div>
      <SearchField
        id={SEARCH_ID}
        text={query}
        label={words.searchPlaceholder}
        shortcut="/"
        onChange={setText}
        list={{
          id: RESULTS_ID,
          isShown: isSearching,
          highlightedId: isSearching && resultCount > 0 ? buildResultId(keys.highlighted) : undefined,
          onKeyDown: keys.onKeyDown,
        }}
      />
      {isSearching ? (
        <>
          <FilterChips filters={filters} onChange={setFilters} />
          <SearchFilterFields filters={filters} onChange={setFilters} />
          <SearchResults results={results} highlighted={keys.highlighted} />
        </>
      ) : (
        <>
          {view.state === "active" && <Projects selectedId={view.project} onSelect={selectProject} />}
          <ListHeading isArchive={view.state === "archived"} showsAll={showsAll} />
          {selection.isActive && <SelectionBar selection={selection} isArchive={view.state === "archived"} />}
          <SessionList view={view} selection={selection} onOrder={onOrder} />
        </>
      )}
      <div className="sidebar-foot">
        {accountMenu}
        <span className="spacer" />
        {isOwner && <ShowAllSwitch />}
        <button
          type="button"
          className="icon-button"
          title={words.archive}
          aria-label={words.archive}
          aria-pressed={view.state === "archived"}
          onClick={() => selectView(view.state === "archived" ? ACTIVE_VIEW : ARCHIVE_VIEW)}
        >
          <ArchiveIcon />
        </button>
      </div>
    </nav>
  );
}

function selectProject(id: string | null): void {
  selectView(id === null ? ACTIVE_VIEW : { state: "active", project: id });
}

/** Opens a result as a click on it does. */
function openResult(index: number): void {
  document.getElementById(buildResultId(index))?.click();
}

/** Opens the temporary conversation. A dot says that there is one. */
function TemporaryButton() {
  const isOpen = useStore(temporaryChat.state, (state) => state.messages.length > 0);
  const label = isOpen ? words.temporaryOpen : words.temporaryConversation;
  return (
    <button
      type="button"
      className="icon-button temporary-button"
      data-open={isOpen}
      title={label}
      aria-label={label}
      onClick={openTemporaryConversation}
    >
      <TemporaryIcon />
    </button>
  );
}

/** Says what is listed, if it is not the person's own active conversations. */
function ListHeading({ isArchive, showsAll }: { isArchive: boolean; showsAll: boolean }) {
  const client = useLiveClient();
  if (!isArchive && !showsAll) return null;
  const names = [...(isArchive ? [words.archive] : []), ...(showsAll ? [words.everybodysConversations] : [])];
  const label = isArchive ? words.closeArchive : words.showOwnConversations;
  return (
    <div className="section-head list-heading">
      {isArchive ? <ArchiveIcon /> : <DoubleBubbleIcon />}
      <h2>{names.join(" · ")}</h2>
      <button
        type="button"
        className="icon-button small"
        title={label}
        aria-label={label}
        onClick={() => (isArchive ? selectView(ACTIVE_VIEW) : client.setShowsAll(false))}
      >
        <CloseIcon />
      </button>
    </div>
  );
}

function ShowAllSwitch() {
  const client = useLiveClient();
  const showsAll = useStore(client.showsAll);
  return (
    <button
      type="button"
      className="icon-button"
      role="switch"
      aria-checked={showsAll}
      title={words.everybodysConversations}
      aria-label={words.everybodysConversations}
      onClick={() => client.setShowsAll(!showsAll)}
    >
      <DoubleBubbleIcon />
    </button>
  );
}
