/** A link within the page; with a modifier key it opens like any other link. */
import type { ComponentProps, MouseEvent } from "react";
import { addressOf, go } from "./router";

interface Props extends Omit<ComponentProps<"a">, "href"> {
  to: string;
  at?: number | null | undefined;
}

export function Link({ to, at, onClick, ...rest }: Props) {
  const hash = at == null ? "" : String(at);
  const follow = (event: MouseEvent<HTMLAnchorElement>) => {
    onClick?.(event);
    const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (event.defaultPrevented || !isPlain) return;
    event.preventDefault();
    go(to, { hash });
  };
  return <a href={addressOf(to, hash)} onClick={follow} {...rest} />;
}
