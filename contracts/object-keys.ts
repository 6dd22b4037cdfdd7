/** Where the text of a dataset lies in the object store, below the store's own prefix. */
export function datasetKey(datasetId: string): string {
  return `datasets/${datasetId}/text`;
}

/** Where the files of a model lie, without a slash at its end. */
export function modelKey(modelId: string): string {
  return `models/${modelId}`;
}
