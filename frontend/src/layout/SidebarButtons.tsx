/** The buttons that stand for the sidebar while it is hidden: one shows it, the other starts a conversation. */
import { useLocation } from "../lib/router";
import { useStore } from "../lib/store";
import { MenuIcon, PlusIcon } from "../ui/icons";
import { words } from "../words";
import { startConversation } from "./focus";
import { isSidebarShown, TOGGLE_ID, toggleSidebar } from "./sidebarVisibility";
import "./page.css";

export function SidebarButtons() {
  const isShown = useStore(isSidebarShown);
  const isHome = useLocation().path === "";
  if (isShown) return null;
  return (
    <>
      <button
        id={TOGGLE_ID}
        type="button"
        className="icon-button"
        title={words.showSidebar}
        aria-label={words.showSidebar}
        onClick={toggleSidebar}
      >
        <MenuIcon />
      </button>
      {!isHome && (
        <button
          type="button"
          className="icon-button"
          title={words.newConversation}
          aria-label={words.newConversation}
          onClick={startConversation}
        >
          <PlusIcon />
        </button>
      )}
    </>
  );
}
