/** Project of the first key and of records without a project. */
export const DEFAULT_PROJECT = 'default';
