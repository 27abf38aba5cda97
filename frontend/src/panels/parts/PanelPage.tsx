/** The frame of a panel: its name, the way to the conversations, and what stands in it. */
import type { ReactNode } from "react";
import { useTitle } from "../../lib/title";
import { MenuButton } from "../../shell/MenuButton";
import "./parts.css";

interface Props {
  title: string;
  actions?: ReactNode;
  children: ReactNode;
}

export function PanelPage({ title, actions, children }: Props) {
  useTitle(title);
  return (
    <section className="panel" aria-label={title}>
      <header className="bar">
        <MenuButton />
        <h1 className="panel-title">{title}</h1>
        <span className="grow" />
        {actions}
      </header>
      <div className="panel-scroller" tabIndex={-1}>
        <div className="panel-column">{children}</div>
      </div>
    </section>
  );
}
