/** The shared copies of the signed-in person's conversations; for owners, those of everybody. */
import { useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { attempt } from "../../api/attempt";
import { formatDate } from "../../format/days";
import { confirm } from "../../ui/ConfirmDialog";
import { CopyButton } from "../../ui/CopyButton";
import { words } from "../../words";
import type { Share } from "../shared/calls";
import * as calls from "../shared/calls";
import { LoadMoreButton } from "../shared/LoadMoreButton";
import { QueryResult } from "../shared/QueryResult";
import { ExpiryDialog } from "./ExpiryDialog";
import { ItemList } from "./ItemList";

const SHARES_KEY = ["shares"];
const FIRST_PAGE: string | null = null;

export function SharedCopies({ personId, isOwner }: { personId: string; isOwner: boolean }) {
  const queryClient = useQueryClient();
  const [edited, setEdited] = useState<Share | null>(null);
  const query = useInfiniteQuery({
    queryKey: SHARES_KEY,
    queryFn: ({ pageParam }) => calls.listShares(isOwner, pageParam),
    initialPageParam: FIRST_PAGE,
    getNextPageParam: (page) => page.next_cursor,
  });
  const deleteShare = async (share: Share) => {
    const question = { title: words.deleteShareTitle(getShareName(share)), text: words.deleteShareText, action: words.deleteShare };
    if (!(await confirm(question))) return;
    await attempt(() => calls.deleteShare(share.id, isOwner));
    await queryClient.invalidateQueries({ queryKey: SHARES_KEY });
  };
  const describe = (share: Share) => {
    const facts = `${words.shareMessages(share.message_count)} · ${formatDate(share.created_at)} · ${describeExpiry(share)}`;
    if (!isOwner) return facts;
    return `${share.person.id === personId ? words.sharedByYou : words.sharedBy(share.person.name)} · ${facts}`;
  };
  return (
    <>
      <p className="hint">{isOwner ? words.sharesIntroOwner : words.sharesIntro}</p>
      <QueryResult query={query}>
        {({ pages }) => (
          <ItemList
            label={words.shares}
            emptyText={`${words.sharesEmpty} ${words.sharesEmptyHint}`}
            items={pages.flatMap((page) => page.shares).map((share) => ({
              id: share.id,
              name: getShareName(share),
              tag: isExpired(share) ? words.shareExpired : undefined,
              facts: describe(share),
              action: (
                <>
                  <CopyButton text={new URL(share.path, location.href).href} label={words.copyShareLink(getShareName(share))} />
                  <button type="button" className="button" aria-label={words.changeExpiryTitle(getShareName(share))} onClick={() => setEdited(share)}>
                    {words.changeExpiry}
                  </button>
                  <button type="button" className="button" aria-label={words.deleteShareLabel(getShareName(share))} onClick={() => void deleteShare(share)}>
                    {words.deleteShare}
                  </button>
                </>
              ),
            }))}
          />
        )}
      </QueryResult>
      <LoadMoreButton query={query} />
      {edited !== null && (
        <ExpiryDialog
          share={edited}
          name={getShareName(edited)}
          isOwner={isOwner}
          onClose={() => setEdited(null)}
          onChanged={() => void queryClient.invalidateQueries({ queryKey: SHARES_KEY })}
        />
      )}
    </>
  );
}

function isExpired({ expires_at: at }: Share): boolean {
  return at !== null && Date.parse(at) <= Date.now();
}

function describeExpiry(share: Share): string {
  const at = share.expires_at;
  if (at === null) return words.shareNoExpiry;
  return isExpired(share) ? words.shareExpiredOn(formatDate(at)) : words.shareExpiresOn(formatDate(at));
}

function getShareName(share: Share): string {
  return share.title ?? words.untitled;
}
