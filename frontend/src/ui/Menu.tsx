/**
 * A menu that opens from a button.
 *
 * It is not modal: Radix stops the page behind a modal menu from scrolling with a style element, which the content security
 * policy forbids.
 */
import * as Radix from "@radix-ui/react-dropdown-menu";
import { useState, type ReactNode } from "react";
import { menuButtons } from "./Dialog";
import { CheckIcon, ChevronDownIcon, ChevronIcon } from "./icons";
import "./Menu.css";

const NARROW_QUERY = "(max-width: 800px)";

interface MenuProps {
  button: ReactNode; // one element that can take a ref
  children: ReactNode;
  align?: "start" | "end";
  side?: "top" | "bottom";
}

export function Menu({ button, children, align = "end", side = "bottom" }: MenuProps) {
  return (
    <Radix.Root modal={false}>
      <Radix.Trigger asChild>{button}</Radix.Trigger>
      <Radix.Portal>
        <Radix.Content className="menu" align={align} side={side} sideOffset={4} collisionPadding={8} onCloseAutoFocus={keepFocus}>
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

/** An item may have opened a field or a dialog, which has the focus then. A dialog returns it to the button of the menu. */
function keepFocus(event: Event): void {
  const active = document.activeElement;
  if (active === null || active === document.body) return;
  event.preventDefault();
  const dialog = active.closest("dialog");
  const buttonId = (event.target as Element).getAttribute("aria-labelledby");
  if (dialog !== null && buttonId !== null) menuButtons.set(dialog, buttonId);
}

interface ItemProps {
  icon?: ReactNode;
  children: ReactNode;
  onSelect: () => void;
  onHighlight?: () => void; // the pointer or the keyboard highlights it
  danger?: boolean;
  disabled?: boolean;
}

export function MenuItem({ icon, children, onSelect, onHighlight, danger = false, disabled = false }: ItemProps) {
  return (
    <Radix.Item className={danger ? "menu-item danger" : "menu-item"} onSelect={onSelect} onFocus={onHighlight} disabled={disabled}>
      <span className="menu-icon">{icon}</span>
      {children}
    </Radix.Item>
  );
}

interface ChoiceProps {
  value: string;
  children: ReactNode;
  hint?: string;
}

export function MenuChoices(props: { value: string; onChange: (value: string) => void; label?: string; children: ReactNode }) {
  return (
    <Radix.RadioGroup value={props.value} onValueChange={props.onChange}>
      {props.label !== undefined && <MenuLabel>{props.label}</MenuLabel>}
      {props.children}
    </Radix.RadioGroup>
  );
}

export function MenuChoice({ value, children, hint }: ChoiceProps) {
  return (
    <Radix.RadioItem className="menu-item" value={value}>
      <span className="menu-icon">
        <Radix.ItemIndicator>
          <CheckIcon />
        </Radix.ItemIndicator>
      </span>
      <span className="menu-text">
        {children}
        {hint !== undefined && <small>{hint}</small>}
      </span>
    </Radix.RadioItem>
  );
}

/** A menu in a menu: beside it or, on a narrow screen, which has no room there, within it. */
export function SubMenu({ label, icon, children }: { label: string; icon?: ReactNode; children: ReactNode }) {
  const [isOpen, setOpen] = useState(false);
  if (window.matchMedia(NARROW_QUERY).matches) {
    return (
      <>
        <Radix.Item
          className="menu-item"
          aria-expanded={isOpen}
          onSelect={(event) => {
            event.preventDefault();
            setOpen(!isOpen);
          }}
        >
          <span className="menu-icon">{icon}</span>
          <span className="menu-text">{label}</span>
          <span className="submenu-arrow">
            <ChevronDownIcon />
          </span>
        </Radix.Item>
        {isOpen && <div className="inline-submenu">{children}</div>}
      </>
    );
  }
  return (
    <Radix.Sub>
      <Radix.SubTrigger className="menu-item">
        <span className="menu-icon">{icon}</span>
        {label}
        <span className="submenu-arrow">
          <ChevronIcon />
        </span>
      </Radix.SubTrigger>
      <Radix.Portal>
        <Radix.SubContent className="menu" sideOffset={2} collisionPadding={8}>
          {children}
        </Radix.SubContent>
      </Radix.Portal>
    </Radix.Sub>
  );
}

interface SwitchProps {
  checked: boolean;
  onChange: (checked: boolean) => void;
  children: ReactNode;
  hint?: string;
}

/** A switch. The menu stays open, so that several can be changed. */
export function MenuSwitch({ checked, onChange, children, hint }: SwitchProps) {
  return (
    <Radix.CheckboxItem
      className="menu-item"
      checked={checked}
      onCheckedChange={onChange}
      onSelect={(event) => event.preventDefault()}
    >
      <span className="menu-text">
        {children}
        {hint !== undefined && <small>{hint}</small>}
      </span>
      <span className="switch" data-on={checked} />
    </Radix.CheckboxItem>
  );
}

export function MenuLabel({ children }: { children: ReactNode }) {
  return <Radix.Label className="menu-label">{children}</Radix.Label>;
}

/** An explanation, which cannot be selected. */
export function MenuNote({ children, isMuted = false }: { children: ReactNode; isMuted?: boolean }) {
  return <Radix.Label className={isMuted ? "menu-note is-muted" : "menu-note"}>{children}</Radix.Label>;
}

export function MenuSeparator() {
  return <Radix.Separator className="menu-separator" />;
}
