/** Who may talk with the agent, as the owner sees and changes it. */
import { useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useMe } from "../../live/context";
import { PlusIcon } from "../../ui/icons";
import { words } from "../../words";
import * as calls from "../calls";
import type { Invited } from "../calls";
import { Loaded } from "../parts/Loaded";
import { PanelPage } from "../parts/PanelPage";
import { ShowMore } from "../parts/ShowMore";
import { InviteDialog, LinkDialog } from "./dialogs";
import { PersonRow } from "./PersonRow";
import "./people.css";

const PEOPLE = ["people"];
const BEGINNING: string | null = null;

export default function PeoplePanel() {
  const me = useMe();
  const client = useQueryClient();
  const [isInviting, setInviting] = useState(false);
  const [invited, setInvited] = useState<{ made: Invited; text: string } | null>(null);
  const query = useInfiniteQuery({
    queryKey: PEOPLE,
    queryFn: ({ pageParam }) => calls.people(pageParam),
    initialPageParam: BEGINNING,
    getNextPageParam: (page) => page.cursor,
  });
  const again = () => client.invalidateQueries({ queryKey: PEOPLE });
  const button = (
    <button type="button" className="button primary" onClick={() => setInviting(true)}>
      <PlusIcon />
      {words.peopleInvite}
    </button>
  );
  return (
    <PanelPage title={words.people} actions={button}>
      <p className="panel-intro">{words.peopleIntro}</p>
      <Loaded query={query}>
        {({ pages }) => {
          const people = pages.flatMap((page) => page.people);
          return (
            <>
              <ul className="card rows-card">
                {people.map((member) => (
                  <PersonRow
                    key={member.id}
                    member={member}
                    isMe={member.id === me.person.id}
                    onChanged={again}
                    onLink={(made) => setInvited({ made, text: words.newLinkText(made.person.name) })}
                  />
                ))}
              </ul>
              {people.length === 1 && (
                <div className="panel-empty">
                  <h2>{words.peopleNobody}</h2>
                  <p>{words.peopleNobodyHint}</p>
                </div>
              )}
            </>
          );
        }}
      </Loaded>
      <ShowMore query={query} />
      {isInviting && (
        <InviteDialog
          onClose={() => setInviting(false)}
          onInvited={(made) => {
            setInviting(false);
            setInvited({ made, text: words.inviteLink(made.person.name) });
            void again();
          }}
        />
      )}
      {invited !== null && <LinkDialog {...invited} onClose={() => setInvited(null)} />}
    </PanelPage>
  );
}
