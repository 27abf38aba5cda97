/** Things somebody has, each with a way to be rid of it. */
import type { ReactNode } from "react";

export interface Thing {
  id: string;
  name: string;
  tag?: string | undefined;
  facts: string;
  action: ReactNode;
}

export function Listed({ things, none, label }: { things: readonly Thing[]; none: string; label: string }) {
  if (things.length === 0) return <p className="panel-note">{none}</p>;
  return (
    <ul className="listed" aria-label={label}>
      {things.map(({ id, name, tag, facts, action }) => (
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
