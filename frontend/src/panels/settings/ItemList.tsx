/** A list of items, each with actions such as a delete button. */
import type { ReactNode } from "react";

export interface ListItem {
  id: string;
  name: string;
  tag?: string | undefined;
  facts: string;
  action: ReactNode;
}

export function ItemList({ items, emptyText, label }: { items: readonly ListItem[]; emptyText: string; label: string }) {
  if (items.length === 0) return <p className="panel-note">{emptyText}</p>;
  return (
    <ul className="item-list" aria-label={label}>
      {items.map(({ id, name, tag, facts, action }) => (
        <li key={id} className="card-row">
          <div className="card-row-text">
            <b dir="auto">
              {name}
              {tag !== undefined && <span className="tag">{tag}</span>}
            </b>
            <small>{facts}</small>
          </div>
          {action}
        </li>
      ))}
    </ul>
  );
}
