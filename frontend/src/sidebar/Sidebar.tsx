/** The sidebar: search, projects, the list of conversations and the account menu. */
import { useEffect, useState, type ReactNode } from "react";
import { startConversation } from "../layout/focus";
import { TOGGLE_ID, toggleSidebar } from "../layout/sidebarVisibility";
import { useStore } from "../lib/store";
import { useLiveClient, useMe } from "../live/context";
import { ACTIVE_VIEW, ARCHIVE_VIEW } from "../live/listViews";
import { selectedView, selectView } from "../sessions/selectedView";
import { ArchiveIcon, MenuIcon, PeopleIcon, PlusIcon } from "../ui/icons";
import { SearchField } from "../ui/SearchField";
import { words } from "../words";
import { Projects } from "./Projects";
import { SearchFilterFields } from "./SearchFilterFields";
import { NO_FILTERS } from "./searchFilters";
import { SearchResults } from "./SearchResults";
import { SelectionBar } from "./SelectionBar";
import { SessionList } from "./SessionList";
import { useSelection } from "./useSelection";

interface Props {
  accountMenu: ReactNode;
  onOrder: (ids: readonly string[]) => void; // called with the listed conversations, in their order
}

export function Sidebar({ accountMenu, onOrder }: Props) {
  const view = useStore(selectedView);
  const [query, setQuery] = useState("");
  const [filters, setFilters] = useState(NO_FILTERS);
  const selection = useSelection();
  const { end } = selection;
  const showsAll = useStore(useLiveClient().showsAll);
  useEffect(() => end, [view, showsAll, end]); // a selection ends when the list changes
  const isOwner = useMe().person.role === "owner";
  return (
    <nav className="sidebar" aria-label={words.conversations}>
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
      <button type="button" className="button primary wide" onClick={startConversation}>
        <PlusIcon />
        {words.newConversation}
      </button>
      <SearchField id="search" text={query} label={words.searchPlaceholder} shortcut="/" onChange={setQuery} />
      {query.trim() !== "" ? (
        <>
          <SearchFilterFields filters={filters} onChange={setFilters} />
          <SearchResults text={query} filters={filters} />
        </>
      ) : (
        <>
          {view.state === "active" && <Projects selectedId={view.project} onSelect={selectProject} />}
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
      <PeopleIcon />
    </button>
  );
}
