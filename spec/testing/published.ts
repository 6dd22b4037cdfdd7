/** A published configuration, with all of its fields and values, and what comes of it here. */
export interface Published {
  /** `owner/repository@commit path`: the GitHub file that it was read from. */
  source: string;
  config: Record<string, unknown>;
  /** Pointer and code of each error; none: it is accepted. */
  errors: string[];
}

/** The text of a table of this folder by name, public-models.json or public-deepspeed.json. */
export function published(text: string): Readonly<Record<string, Published>> {
  return JSON.parse(text);
}

export const SOURCE = /^[\w.-]+\/[\w.-]+@[0-9a-f]{12} \S+$/;
