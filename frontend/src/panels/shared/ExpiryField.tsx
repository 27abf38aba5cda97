/** Chooses when a shared link expires. */
import { words } from "../../words";
import { EXPIRY_DAYS, formatDayInput, type Expiry } from "./expiry";

export function ExpiryField({ value, onChange }: { value: Expiry; onChange: (value: Expiry) => void }) {
  return (
    <div className="expiry-field">
      <label className="field">
        <span>{words.shareExpires}</span>
        <select value={value.choice} onChange={(event) => onChange({ ...value, choice: event.target.value })}>
          <option value="never">{words.shareNeverExpires}</option>
          {EXPIRY_DAYS.map((days) => (
            <option key={days} value={days}>
              {words.shareExpiresIn(days)}
            </option>
          ))}
          <option value="date">{words.shareExpiresOnDate}</option>
        </select>
      </label>
      {value.choice === "date" && (
        <label className="field">
          <span>{words.shareLastDay}</span>
          <input
            type="date"
            required
            min={formatDayInput(new Date())}
            value={value.day}
            onChange={(event) => onChange({ ...value, day: event.target.value })}
          />
        </label>
      )}
    </div>
  );
}
