/** A field for an IANA time zone, with all that the browser knows as suggestions. */
import { useId } from "react";

interface Props {
  value: string;
  placeholder?: string;
  required?: boolean;
  id?: string;
  disabled?: boolean;
  "aria-invalid"?: boolean;
  "aria-describedby"?: string;
  onChange: (timezone: string) => void;
}

export function TimezoneInput({ onChange, ...props }: Props) {
  const list = useId();
  return (
    <>
      <input {...props} list={list} spellCheck={false} onChange={(event) => onChange(event.target.value)} />
      <datalist id={list}>
        {Intl.supportedValuesOf("timeZone").map((zone) => (
          <option key={zone} value={zone} />
        ))}
      </datalist>
    </>
  );
}
