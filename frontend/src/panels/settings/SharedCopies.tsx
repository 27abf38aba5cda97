/** The shared copies of the signed-in person's conversations. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { attempt } from "../../api/attempt";
import { formatDate } from "../../format/days";
import { confirm } from "../../ui/ConfirmDialog";
import { words } from "../../words";
import type { Share } from "../shared/calls";
import * as calls from "../shared/calls";
import { QueryResult } from "../shared/QueryResult";
import { ItemList } from "./ItemList";

const SHARES_KEY = ["shares"];

export function SharedCopies() {
  const queryClient = useQueryClient();
  const query = useQuery({ queryKey: SHARES_KEY, queryFn: calls.listShares });
  const deleteShare = async (share: Share) => {
    const question = { title: words.deleteShareTitle(getShareName(share)), text: words.deleteShareText, action: words.deleteShare };
    if (!(await confirm(question))) return;
    await attempt(() => calls.deleteShare(share.id));
    await queryClient.invalidateQueries({ queryKey: SHARES_KEY });
  };
  return (
    <>
      <p className="hint">{words.sharesIntro}</p>
      <QueryResult query={query}>
        {({ shares }) => (
          <ItemList
            label={words.shares}
            emptyText={`${words.sharesEmpty} ${words.sharesEmptyHint}`}
            items={shares.map((share) => ({
              id: share.id,
              name: getShareName(share),
              facts: `${words.shareMessages(share.message_count)} · ${formatDate(share.created_at)}`,
              action: (
                <button type="button" className="button" aria-label={words.deleteShareLabel(getShareName(share))} onClick={() => void deleteShare(share)}>
                  {words.deleteShare}
                </button>
              ),
            }))}
          />
        )}
      </QueryResult>
    </>
  );
}

function getShareName(share: Share): string {
  return share.title ?? words.untitled;
}
