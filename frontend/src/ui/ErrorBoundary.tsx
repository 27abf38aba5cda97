/**
 * Shows a fallback for a part of the page that failed to load or to render, and keeps the rest of the page.
 *
 * Pages are loaded when they are first shown. The server may be unreachable by then, or serve other files after an update.
 */
import { Component, useEffect, useState, type ReactNode } from "react";
import { isPageOutdated } from "../lib/pageVersion";
import { words } from "../words";
import { toast } from "./toasts";
import "./ErrorBoundary.css";

interface Props {
  children: ReactNode;
  fallback: ReactNode;
  resetKey?: string; // a new value tries the children again
}

interface State {
  hasFailed: boolean;
  resetKey: string | undefined;
}

export class ErrorBoundary extends Component<Props, State> {
  override state: State = { hasFailed: false, resetKey: this.props.resetKey };

  static getDerivedStateFromProps({ resetKey }: Props, state: State): State | null {
    return resetKey === state.resetKey ? null : { hasFailed: false, resetKey };
  }

  static getDerivedStateFromError(): Partial<State> {
    return { hasFailed: true };
  }

  override render(): ReactNode {
    return this.state.hasFailed ? this.props.fallback : this.props.children;
  }
}

/** The fallback for a page. It says so if the files of this version are gone because there is a new one. */
export function LoadError() {
  const [isOutdated, setOutdated] = useState(false);
  useEffect(() => void isPageOutdated().then(setOutdated), []);
  return (
    <div className="empty-page" role="alert">
      <h1>{isOutdated ? words.newVersion : words.loadFailed}</h1>
      <p>{isOutdated ? words.newVersionHint : words.loadFailedHint}</p>
      <button type="button" className="button" onClick={reloadPage}>
        {words.reloadPage}
      </button>
    </div>
  );
}

/** The fallback for a dialog: it shows a toast and closes the dialog. */
export function DialogLoadError({ close }: { close: () => void }) {
  useEffect(() => {
    void isPageOutdated().then((isOutdated) => {
      toast(isOutdated ? words.newVersion : words.loadFailed, { label: words.reloadPage, act: reloadPage });
    });
    close();
  }, [close]);
  return null;
}

const reloadPage = () => location.reload();
