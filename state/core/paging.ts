/** A page of a list: at most `limit` entries (1..100, default 20) after the entry with this id. */
export interface PageRequest {
  after?: string;
  limit?: number;
}

/** A page of one project's records; 'default' when none is named. */
interface ProjectPageRequest extends PageRequest {
  project?: string;
}

export interface NamedPageRequest extends ProjectPageRequest {
  /** Exact name. */
  name?: string;
  /** Prefix of the ids. */
  id_prefix?: string;
}
