/** A link to another address of the page, without reloading it. With a modifier key it opens like any other link. */
import type { ComponentProps, MouseEvent } from "react";
import { buildHref, navigate } from "../lib/router";

interface Props extends Omit<ComponentProps<"a">, "href"> {
  to: string; // path
  seq?: number | null | undefined; // of a message
  section?: string; // of a page
}

export function Link({ to, seq, section = "", onClick, ...rest }: Props) {
  const hash = seq == null ? section : String(seq);
  const follow = (event: MouseEvent<HTMLAnchorElement>) => {
    onClick?.(event);
    const isPlainClick = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (event.defaultPrevented || !isPlainClick) return;
    event.preventDefault();
    navigate(to, { hash });
  };
  return <a href={buildHref(to, hash)} onClick={follow} {...rest} />;
}
