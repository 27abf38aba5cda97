/** The copies of conversations that somebody shares. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { attempt } from "../../conversation/actions";
import { confirm } from "../../ui/confirm";
import { words } from "../../words";
import * as calls from "../calls";
import type { Share } from "../calls";
import { Loaded } from "../parts/Loaded";
import { onDay } from "../parts/days";
import { Listed } from "./Listed";

const SHARES = ["shares"];

export function SharedCopies() {
  const client = useQueryClient();
  const query = useQuery({ queryKey: SHARES, queryFn: calls.shares });
  const takeBack = async (share: Share) => {
    const question = { title: words.takeBackShareTitle(nameOf(share)), text: words.takeBackShareText, action: words.takeBack };
    if (!(await confirm(question))) return;
    await attempt(() => calls.revokeShare(share.id));
    await client.invalidateQueries({ queryKey: SHARES });
  };
  return (
    <>
      <p className="hint">{words.sharesIntro}</p>
      <Loaded query={query}>
        {({ shares }) => (
          <Listed
            label={words.shares}
            none={`${words.sharesNone} ${words.sharesNoneHint}`}
            things={shares.map((share) => ({
              id: share.id,
              name: nameOf(share),
              facts: `${words.shareMessages(share.message_count)} · ${onDay(share.created_at)}`,
              action: (
                <button type="button" className="button" aria-label={words.takeBackShare(nameOf(share))} onClick={() => void takeBack(share)}>
                  {words.takeBack}
                </button>
              ),
            }))}
          />
        )}
      </Loaded>
    </>
  );
}

function nameOf(share: Share): string {
  return share.title ?? words.untitled;
}
