/** Which part of a list: entries after the one with this id, at most `limit` (1..100, default 20). */
export interface PageRequest {
  after?: string;
  limit?: number;
}

/** Of what belongs to one project; 'default' when none is named. */
export interface ProjectPageRequest extends PageRequest {
  project?: string;
}

export interface NamedPageRequest extends ProjectPageRequest {
  /** Exactly this one. */
  name?: string;
  /** What their ids begin with. */
  id_prefix?: string;
}
