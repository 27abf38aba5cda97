/** Shows the list of conversations where it is hidden. */
import { useStore } from "../lib/store";
import { MenuIcon } from "../ui/icons";
import { words } from "../words";
import { sidebarShown, TOGGLE, toggleSidebar } from "./layout";

const itself = (isShown: boolean) => isShown;

export function MenuButton() {
  const isShown = useStore(sidebarShown, itself);
  if (isShown) return null;
  return (
    <button
      id={TOGGLE}
      type="button"
      className="icon-button"
      title={words.openMenu}
      aria-label={words.openMenu}
      onClick={toggleSidebar}
    >
      <MenuIcon />
    </button>
  );
}
