/** The button that shows the sidebar while it is hidden. */
import { useStore } from "../lib/store";
import { MenuIcon } from "../ui/icons";
import { words } from "../words";
import { isSidebarShown, TOGGLE_ID, toggleSidebar } from "./sidebarVisibility";

export function SidebarButton() {
  const isShown = useStore(isSidebarShown);
  if (isShown) return null;
  return (
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
  );
}
