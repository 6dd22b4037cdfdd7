/** Project of the first key and of records without a project. */
export const DEFAULT_PROJECT = 'default';

/** Pattern of `ProjectName` in the contract; a test compares them. */
export const PROJECT_NAME = /^[a-z0-9][a-z0-9-]{0,38}$/;
