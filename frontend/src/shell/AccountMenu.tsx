/** Who is signed in, how the page looks, and the way out. */
import { useState } from "react";
import * as calls from "../api/calls";
import { attempt } from "../conversation/actions";
import { go } from "../lib/router";
import { keep } from "../lib/keep";
import { useMe } from "../live/context";
import { panelsFor } from "../routes";
import { ChevronDownIcon, UserIcon } from "../ui/icons";
import { Menu, MenuChoice, MenuChoices, MenuItem, MenuLine, SubMenu } from "../ui/Menu";
import { language, LANGUAGES, words } from "../words";
import { giveWay } from "./layout";
import { chooseTheme, theme, type Theme } from "./theme";
import { openShortcuts } from "./Shortcuts";

export function AccountMenu() {
  const me = useMe();
  const [chosen, setChosen] = useState(theme);
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
      {panelsFor(me).map(({ step, label, icon, page }) => (
        <MenuItem
          key={step}
          icon={icon}
          onPoint={page.fetch}
          onSelect={() => {
            go(step);
            giveWay();
          }}
        >
          {label()}
        </MenuItem>
      ))}
      <MenuLine />
      <MenuChoices
        label={words.theme}
        value={chosen}
        onChange={(value) => {
          setChosen(value as Theme);
          chooseTheme(value as Theme);
        }}
      >
        <MenuChoice value="system">{words.themeSystem}</MenuChoice>
        <MenuChoice value="light">{words.themeLight}</MenuChoice>
        <MenuChoice value="dark">{words.themeDark}</MenuChoice>
      </MenuChoices>
      <MenuLine />
      <SubMenu label={words.language}>
        <MenuChoices
          value={language()}
          onChange={(value) => {
            keep("language", value);
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
      <MenuItem onSelect={openShortcuts}>{words.showShortcuts}</MenuItem>
      <MenuLine />
      <MenuItem
        onSelect={() =>
          void attempt(calls.signOut).then((worked) => {
            if (worked) location.assign(location.pathname);
          })
        }
      >
        {words.signOut}
      </MenuItem>
    </Menu>
  );
}
