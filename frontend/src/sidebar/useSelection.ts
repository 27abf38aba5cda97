/** Several conversations, chosen to do something with all of them. */
import { useCallback, useMemo, useRef, useState } from "react";

export interface Selection {
  isOn: boolean;
  ids: ReadonlySet<string>;
  toggle: (id: string, how: "one" | "range", order: readonly string[]) => void;
  end: () => void;
}

export function useSelection(): Selection {
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set());
  const last = useRef<string | null>(null);

  const toggle = useCallback((id: string, how: "one" | "range", order: readonly string[]) => {
    const from = last.current === null ? -1 : order.indexOf(last.current);
    const to = order.indexOf(id);
    last.current = id;
    setIds((chosen) => {
      const next = new Set(chosen);
      if (how === "range" && from >= 0) {
        for (const each of order.slice(Math.min(from, to), Math.max(from, to) + 1)) next.add(each);
      } else if (!next.delete(id)) next.add(id);
      return next;
    });
  }, []);

  const end = useCallback(() => {
    last.current = null;
    setIds(new Set());
  }, []);

  return useMemo(() => ({ isOn: ids.size > 0, ids, toggle, end }), [ids, toggle, end]);
}
