/** The panel in which an owner sees, invites and changes people. */
import { useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useMe } from "../../live/context";
import { PlusIcon } from "../../ui/icons";
import { words } from "../../words";
import type { Invitation } from "../shared/calls";
import * as calls from "../shared/calls";
import { LoadMoreButton } from "../shared/LoadMoreButton";
import { PanelPage } from "../shared/PanelPage";
import { QueryResult } from "../shared/QueryResult";
import { AccessRequests } from "../forms/AccessRequests";
import { InviteDialog, LinkDialog } from "./dialogs";
import { PersonRow } from "./PersonRow";
import "./people.css";

const PEOPLE_KEY = ["people"];
const FIRST_PAGE: string | null = null;

export default function PeoplePanel() {
  const me = useMe();
  const queryClient = useQueryClient();
  const [isInviting, setInviting] = useState(false);
  const [newLink, setNewLink] = useState<{ invitation: Invitation; text: string } | null>(null);
  const query = useInfiniteQuery({
    queryKey: PEOPLE_KEY,
    queryFn: ({ pageParam }) => calls.listPeople(pageParam),
    initialPageParam: FIRST_PAGE,
    getNextPageParam: (page) => page.next_cursor,
  });
  const refresh = () => queryClient.invalidateQueries({ queryKey: PEOPLE_KEY });
  const button = (
    <button type="button" className="button primary" onClick={() => setInviting(true)}>
      <PlusIcon />
      {words.peopleInvite}
    </button>
  );
  return (
    <PanelPage title={words.people} actions={button}>
      <AccessRequests onApprove={refresh} />
      <p className="panel-intro">{words.peopleIntro}</p>
      <QueryResult query={query}>
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
                    onChange={refresh}
                    onLink={(invitation) => setNewLink({ invitation, text: words.newLinkText(invitation.person.name) })}
                  />
                ))}
              </ul>
              {people.length === 1 && (
                <div className="panel-empty">
                  <h2>{words.peopleEmpty}</h2>
                  <p>{words.peopleEmptyHint}</p>
                </div>
              )}
            </>
          );
        }}
      </QueryResult>
      <LoadMoreButton query={query} />
      {isInviting && (
        <InviteDialog
          onClose={() => setInviting(false)}
          onInvited={(invitation) => {
            setInviting(false);
            setNewLink({ invitation, text: words.inviteLinkText(invitation.person.name) });
            void refresh();
          }}
        />
      )}
      {newLink !== null && <LinkDialog {...newLink} onClose={() => setNewLink(null)} />}
    </PanelPage>
  );
}
