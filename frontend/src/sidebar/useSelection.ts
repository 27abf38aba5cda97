/** The selection of several conversations. */
import { useCallback, useMemo, useRef, useState } from "react";

export interface Selection {
  isActive: boolean;
  ids: ReadonlySet<string>;
  toggle: (id: string, mode: "one" | "range", order: readonly string[]) => void;
  end: () => void;
}

export function useSelection(): Selection {
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set());
  const lastId = useRef<string | null>(null);

  const toggle = useCallback((id: string, mode: "one" | "range", order: readonly string[]) => {
    const from = lastId.current === null ? -1 : order.indexOf(lastId.current);
    const to = order.indexOf(id);
    lastId.current = id;
    setIds((selected) => {
      const next = new Set(selected);
      if (mode === "range" && from >= 0) {
        for (const each of order.slice(Math.min(from, to), Math.max(from, to) + 1)) next.add(each);
      } else if (!next.delete(id)) next.add(id);
      return next;
    });
  }, []);

  const end = useCallback(() => {
    lastId.current = null;
    setIds(new Set());
  }, []);

  return useMemo(() => ({ isActive: ids.size > 0, ids, toggle, end }), [ids, toggle, end]);
}
