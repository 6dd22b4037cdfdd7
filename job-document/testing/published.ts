/** Published configuration with all of its fields, and the expected result. */
interface Published {
  /** `owner/repository@commit path`: the GitHub file that it was read from. */
  source: string;
  config: Record<string, unknown>;
  /** Pointer and code of each error; empty if accepted. */
  errors: string[];
}

/** Parses a table of this folder by name, public-models.json or public-deepspeed.json. */
export function published(text: string): Readonly<Record<string, Published>> {
  return JSON.parse(text);
}

export const SOURCE = /^[\w.-]+\/[\w.-]+@[0-9a-f]{12} \S+$/;
