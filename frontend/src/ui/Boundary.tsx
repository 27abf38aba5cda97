/**
 * Keeps what could not be fetched or drawn from taking the rest of the page with it.
 *
 * Pages are fetched when they are first shown; the server may be away then, or have other files since it was updated.
 */
import { Component, useEffect, type ReactNode } from "react";
import { words } from "../words";
import { toast } from "./toasts";

interface Props {
  children: ReactNode;
  instead: ReactNode;
  place?: string; // another one is a fresh start
}

interface State {
  hasFailed: boolean;
  place: string | undefined;
}

export class Boundary extends Component<Props, State> {
  override state: State = { hasFailed: false, place: this.props.place };

  static getDerivedStateFromProps({ place }: Props, state: State): State | null {
    return place === state.place ? null : { hasFailed: false, place };
  }

  static getDerivedStateFromError(): Partial<State> {
    return { hasFailed: true };
  }

  override render(): ReactNode {
    return this.state.hasFailed ? this.props.instead : this.props.children;
  }
}

/** In the place of a page. */
export function NotShown() {
  return (
    <div className="empty-page" role="alert">
      <h1>{words.notShown}</h1>
      <p>{words.notShownText}</p>
      <button type="button" className="button" onClick={() => location.reload()}>
        {words.loadAgain}
      </button>
    </div>
  );
}

/** In the place of something that opens above a page: a word, and it is closed. */
export function NotOpened({ close }: { close: () => void }) {
  useEffect(() => {
    toast(words.notShown);
    close();
  }, [close]);
  return null;
}
