/** The frame of a panel: its title, the button for the sidebar, and its content. */
import type { ReactNode } from "react";
import { SidebarButtons } from "../../layout/SidebarButtons";
import { useDocumentTitle } from "../../lib/documentTitle";
import "./panels.css";

interface Props {
  title: string;
  actions?: ReactNode;
  children: ReactNode;
}

export function PanelPage({ title, actions, children }: Props) {
  useDocumentTitle(title);
  return (
    <section className="panel" aria-label={title}>
      <header className="bar">
        <SidebarButtons />
        <h1 className="panel-title">{title}</h1>
        <span className="spacer" />
        {actions}
      </header>
      <div className="panel-scroller" tabIndex={-1}>
        <div className="panel-column">{children}</div>
      </div>
    </section>
  );
}
