/** Says that a message goes to a platform together with its answer. */
import { getPlatformName } from "../format/platforms";
import { PlatformIcon } from "../ui/PlatformBadge";
import { words } from "../words";
import "./message.css";

export function AlsoSentTo({ platform }: { platform: string }) {
  return (
    <span className="delivery">
      <PlatformIcon platform={platform} />
      {words.alsoSentTo(getPlatformName(platform))}
    </span>
  );
}
