/** The menu of the signed-in person: panels, theme, language, shortcuts and signing out. */
import { useState } from "react";
import { attempt } from "../api/attempt";
import * as calls from "../api/calls";
import { openShortcutsDialog } from "../layout/dialogs";
import { hideSidebarIfNarrow } from "../layout/sidebarVisibility";
import { getTheme, setTheme, type Theme } from "../layout/theme";
import { navigate } from "../lib/router";
import { storage } from "../lib/storage";
import { useMe } from "../live/context";
import { forgetPerson } from "../lib/personal";
import { ChevronDownIcon, UserIcon } from "../ui/icons";
import { Menu, MenuChoice, MenuChoices, MenuItem, MenuSeparator, SubMenu } from "../ui/Menu";
import { getLanguage, LANGUAGES, words } from "../words";
import type { Panel } from "./panels";
import "./AccountMenu.css";

export function AccountMenu({ panels }: { panels: readonly Panel[] }) {
  const me = useMe();
  const [theme, setChosenTheme] = useState(getTheme);
  return (
    <Menu
      align="start"
      side="top"
      button={
        <button type="button" className="account" title={words.account}>
          <UserIcon />
          <span dir="auto">{me.person.name}</span>
          <ChevronDownIcon />
        </button>
      }
    >
      {panels.map(({ path, label, icon, page }) => (
        <MenuItem
          key={path}
          icon={icon}
          onHighlight={page.preload}
          onSelect={() => {
            navigate(path);
            hideSidebarIfNarrow();
          }}
        >
          {label()}
        </MenuItem>
      ))}
      <MenuSeparator />
      <MenuChoices
        label={words.theme}
        value={theme}
        onChange={(value) => {
          setChosenTheme(value as Theme);
          setTheme(value as Theme);
        }}
      >
        <MenuChoice value="system">{words.themeSystem}</MenuChoice>
        <MenuChoice value="light">{words.themeLight}</MenuChoice>
        <MenuChoice value="dark">{words.themeDark}</MenuChoice>
      </MenuChoices>
      <MenuSeparator />
      <SubMenu label={words.language}>
        <MenuChoices
          value={getLanguage()}
          onChange={(value) => {
            storage.set("language", value);
            location.reload();
          }}
        >
          {Object.entries(LANGUAGES).map(([code, name]) => (
            <MenuChoice key={code} value={code}>
              {name}
            </MenuChoice>
          ))}
        </MenuChoices>
      </SubMenu>
      <MenuItem onSelect={openShortcutsDialog}>{words.showShortcuts}</MenuItem>
      <MenuSeparator />
      <MenuItem
        onSelect={() =>
          void attempt(calls.signOut).then((worked) => {
            if (!worked) return;
            forgetPerson();
            location.assign(location.pathname);
          })
        }
      >
        {words.signOut}
      </MenuItem>
    </Menu>
  );
}
