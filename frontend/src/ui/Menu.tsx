/**
 * A menu that opens from a button.
 *
 * It is not modal: a modal one would write a style element into the page to stop it from scrolling, which the content
 * security policy forbids.
 */
import * as Radix from "@radix-ui/react-dropdown-menu";
import type { ReactNode } from "react";
import { CheckIcon, ChevronIcon } from "./icons";

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
        <Radix.Content className="menu" align={align} side={side} sideOffset={4} collisionPadding={8}>
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

interface ItemProps {
  icon?: ReactNode;
  children: ReactNode;
  onSelect: () => void;
  onPoint?: () => void; // somebody points at it, with the pointer or the keys
  danger?: boolean;
  disabled?: boolean;
}

export function MenuItem({ icon, children, onSelect, onPoint, danger = false, disabled = false }: ItemProps) {
  return (
    <Radix.Item className={danger ? "menu-item danger" : "menu-item"} onSelect={onSelect} onFocus={onPoint} disabled={disabled}>
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

export function SubMenu({ label, icon, children }: { label: string; icon?: ReactNode; children: ReactNode }) {
  return (
    <Radix.Sub>
      <Radix.SubTrigger className="menu-item">
        <span className="menu-icon">{icon}</span>
        {label}
        <span className="menu-more">
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

/** Something to be switched on and off; the menu stays open, so that several can be. */
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

/** Words that explain, and cannot be chosen. */
export function MenuNote({ children, quiet = false }: { children: ReactNode; quiet?: boolean }) {
  return <Radix.Label className={quiet ? "menu-note quiet-note" : "menu-note"}>{children}</Radix.Label>;
}

export function MenuLine() {
  return <Radix.Separator className="menu-line" />;
}
