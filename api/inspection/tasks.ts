/**
 * Computations on client content, and on manifests, that may block the event loop, by name. They run in threads with
 * limits.
 */
import { parseChatTemplate } from '../../formats/encoding/parsed-template.js';
import { readCall } from '../calls/read-call.js';
import { readTinkerJson, readTinkerPass } from '../calls/tinker/read-call.js';
import { writeTinkerResult } from '../calls/tinker/write-result.js';
import { checkLines } from '../contents/check-lines.js';
import * as models from '../contents/inspect.js';
import { previewData } from '../contents/preview-data.js';
import { readCsv } from '../contents/rows/read-csv.js';
import { planParquet, readParquet } from '../contents/rows/read-parquet.js';
import { findTensor, listTensors } from '../tensors/find-tensor.js';
import { estimateMemory } from './estimate-memory.js';

export const tasks = {
  ...models,
  checkLines,
  previewData,
  readCsv,
  planParquet,
  readParquet,
  listTensors,
  findTensor,
  estimateMemory,
  readCall,
  readTinkerPass,
  readTinkerJson,
  writeTinkerResult,
  /** @throws ZerofleetError `chat_template_invalid` */
  checkTemplate: ({ source }: { source: string }): void => void parseChatTemplate(source),
};

export type InspectionTasks = typeof tasks;
