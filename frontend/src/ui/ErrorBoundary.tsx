/**
 * Shows a fallback for a part of the page that failed to load or to render, and keeps the rest of the page.
 *
 * Pages are loaded when they are first shown. The server may be unreachable by then, or serve other files after an update.
 */
import { Component, useEffect, type ReactNode } from "react";
import { words } from "../words";
import { toast } from "./toasts";

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

/** The fallback for a page. */
export function LoadError() {
  return (
    <div className="empty-page" role="alert">
      <h1>{words.loadFailed}</h1>
      <p>{words.loadFailedHint}</p>
      <button type="button" className="button" onClick={() => location.reload()}>
        {words.reloadPage}
      </button>
    </div>
  );
}

/** The fallback for a dialog: it shows a toast and closes the dialog. */
export function DialogLoadError({ close }: { close: () => void }) {
  useEffect(() => {
    toast(words.loadFailed);
    close();
  }, [close]);
  return null;
}
