/** One environment variable: `ZEROFLEET_` and the key in upper case. */
export interface Setting {
  key: string;
  /** Default as text, also for the documentation. Null: may stay unset. */
  fallback: string | null;
  /** Effect of an unset variable, where `fallback` does not state it. */
  unset?: string;
  help: string;
  parse(text: string): unknown;
}
