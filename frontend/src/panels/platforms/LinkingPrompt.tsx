/** What to do on a phone to link it with an account: a QR code to scan, or a code to type. Only owners get it. */
import type { Schemas } from "../../api/types";
import { CopyButton } from "../../ui/CopyButton";
import { words } from "../../words";
import { QrCode } from "./QrCode";

export function LinkingPrompt({ linking, platform }: { linking: Schemas["LinkingJson"]; platform: string }) {
  return (
    <div className="linking-prompt">
      <p dir="auto">{linking.instructions}</p>
      {linking.qr_code !== null && <QrCode rows={linking.qr_code} label={words.linkingQrCode(platform)} />}
      {linking.code !== null && (
        <p className="linking-code">
          <span>{words.linkingCode}</span> <code>{linking.code}</code> <CopyButton text={linking.code} />
        </p>
      )}
      {linking.expires_at !== null && <p>{words.linkingRenewed}</p>}
    </div>
  );
}
