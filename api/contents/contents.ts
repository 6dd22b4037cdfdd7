import { type Model, ZerofleetError } from '../../contracts/index.js';
import {
  ADAPTER_CONFIG_FILE,
  ADAPTER_WEIGHTS_FILE,
  ADDED_TOKENS_FILE,
  CHAT_TEMPLATE_FILE,
  CONFIG_FILE,
  INDEX_FILE,
  isSentencepiece,
  SPECIAL_TOKENS_FILE,
  TOKENIZER_CONFIG_FILE,
  TOKENIZER_FILE,
} from '../../formats/models/documents.js';
import { paramOfPeft } from '../../formats/models/peft-names.js';
import { documentText } from '../../formats/models/read-document.js';
import type { WeightTensor } from '../../formats/models/weights.js';
import type { SafetensorsHeader } from '../../formats/safetensors/header.js';
import type { TorchFile } from '../../formats/torch-file/read.js';
import { readAdapter } from './adapter.js';
import { type ModelShape, shapeOf } from './config.js';
import { DeepSpeedCheckpoint, type UploadedOptimizer } from './deepspeed/checkpoint.js';
import type { Pair } from './deepspeed/module-weights.js';
import { parseDocument, parseIndex } from './documents.js';
import { checkIndex, checkTied, checkWhole, parameterTensors, type WeightsHeader } from './tensors.js';
import { type ReadTokenizer, readTokenizerFiles, type TokenizerDocuments } from './tokenizer.js';

/** A model whose files are consistent. */
export interface CheckedModel extends ReadTokenizer {
  config: Record<string, unknown>;
  shape: ModelShape;
  /** Parameters of each weights file, by file name. */
  tensors: ReadonlyMap<string, WeightTensor[]>;
  optimizer: UploadedOptimizer | null;
  /** The adapter that the weights are; null for those of a model. */
  adapter: NonNullable<Model['adapter']> | null;
  /** Elements of a checkpoint that are there twice, and must be equal. */
  pairs: readonly Pair[];
}

/**
 * Checks the files of a model against each other in any order of arrival. Each file is checked as soon as the files it
 * depends on are present, so an invalid shard ends an upload before the following shards are sent.
 */
export class ModelContents {
  private config: Record<string, unknown> | null = null;
  private shape: ModelShape | null = null;
  private index: Map<string, string> | null = null;
  private adapterConfig: Record<string, unknown> | null = null;
  private readonly tokenizer: TokenizerDocuments = {};
  private readonly files: WeightsHeader[] = [];
  /** Headers that arrived before `config.json`. */
  private waiting: { file: string; header: SafetensorsHeader }[] = [];
  private readonly tensors = new Map<string, WeightTensor[]>();
  private readonly checkpoint = new DeepSpeedCheckpoint();

  /**
   * @throws ZerofleetError `model_config_invalid`, `model_index_mismatch`, `tokenizer_invalid`, `model_archive_invalid`
   *   and those of the tensors
   */
  document(name: string, bytes: Uint8Array): void {
    if (name === CONFIG_FILE) {
      this.config = parseDocument(name, bytes, 'model_config_invalid');
      this.shape = shapeOf(this.config);
      for (const { file, header } of this.waiting) this.header(file, header);
      this.waiting = [];
    } else if (name === ADAPTER_CONFIG_FILE) {
      this.adapterConfig = parseDocument(name, bytes, 'model_config_invalid');
    } else if (name === INDEX_FILE) {
      this.index = parseIndex(name, bytes);
    } else if (name === TOKENIZER_FILE) {
      this.tokenizer.tokenizer = parseDocument(name, bytes, 'tokenizer_invalid');
    } else if (name === TOKENIZER_CONFIG_FILE) {
      this.tokenizer.config = parseDocument(name, bytes, 'tokenizer_invalid');
    } else if (name === CHAT_TEMPLATE_FILE) {
      this.tokenizer.template = documentText(name, bytes, 'tokenizer_invalid');
    } else if (name === SPECIAL_TOKENS_FILE) {
      this.tokenizer.special_tokens_map = parseDocument(name, bytes, 'tokenizer_invalid');
    } else if (name === ADDED_TOKENS_FILE) {
      this.tokenizer.added_tokens = parseDocument(name, bytes, 'tokenizer_invalid');
    } else if (isSentencepiece(name)) {
      const previous = this.tokenizer.sentencepiece;
      if (previous === undefined || name < previous.name) this.tokenizer.sentencepiece = { name, bytes };
    } else if (name.endsWith('.json')) {
      parseDocument(name, bytes, 'model_archive_invalid');
    }
  }

  /** @throws ZerofleetError `model_tensor_unexpected`, `model_tensor_mismatch` */
  header(file: string, header: SafetensorsHeader): void {
    // Which parameters an adapter has is known from all of its files.
    if (this.shape === null || file === ADAPTER_WEIGHTS_FILE) this.waiting.push({ file, header });
    else this.tensors.set(file, parameterTensors({ file, header }, this.shape));
  }

  /** Adds a file of a DeepSpeed checkpoint. @throws as `DeepSpeedCheckpoint.add` */
  checkpointFile(name: string, read: () => Promise<TorchFile>): Promise<void> {
    return this.checkpoint.add(name, read);
  }

  /** Marks a weights file as completely received. */
  complete(file: WeightsHeader): void {
    this.files.push(file);
  }

  /**
   * @throws ZerofleetError `model_file_missing`, `model_config_invalid`, `model_tensor_…`, `model_index_mismatch`,
   *   `tokenizer_invalid`; checkpoint errors
   */
  finish(): CheckedModel {
    const { config, shape, tensors } = this;
    if (config === null || shape === null) throw missing(CONFIG_FILE);
    const tokenizer = this.finishTokenizer();
    if (this.adapterConfig !== null) return this.finishAdapter(config, this.adapterConfig, tokenizer);
    if (this.checkpoint.isUniversal && this.files.length > 0) throw twoSources();
    if (this.files.length === 0) {
      if (!this.checkpoint.hasParams) throw missing('model.safetensors without shards');
      return { ...NO_CHECKPOINT, config, shape, ...this.checkpoint.finish(shape.params), ...tokenizer };
    }
    if (this.index !== null) checkIndex(this.index, this.files);
    checkWhole(
      [...tensors].flatMap(([file, list]) => list.map((tensor) => ({ file, tensor }))),
      shape,
    );
    checkTied(this.files, shape);
    return { ...NO_CHECKPOINT, config, shape, tensors, ...tokenizer };
  }

  private finishAdapter(
    config: Record<string, unknown>,
    document: Record<string, unknown>,
    tokenizer: ReadTokenizer,
  ): CheckedModel {
    const [weights] = this.waiting;
    if (weights === undefined) throw missing(ADAPTER_WEIGHTS_FILE);
    const { file } = weights;
    const { adapter, header, shape } = readAdapter(config, document, weights.header);
    const tensors = parameterTensors({ file, header }, shape);
    checkWhole(
      tensors.map((tensor) => ({ file, tensor })),
      shape,
    );
    const digests = this.files.flatMap((each) => [...each.digests]);
    checkTied(
      [{ file, header, digests: new Map(digests.map(([name, digest]) => [paramOfPeft(name), digest])) }],
      shape,
    );
    return { ...NO_CHECKPOINT, config, shape, tensors: new Map([[file, tensors]]), adapter, ...tokenizer };
  }

  /** @throws as `readTokenizerFiles` */
  finishTokenizer(): ReadTokenizer {
    return readTokenizerFiles(this.tokenizer, this.config?.model_type);
  }
}

/** Parts that a model of safetensors alone does not have. */
const NO_CHECKPOINT = { optimizer: null, adapter: null, pairs: [] };

function twoSources(): ZerofleetError {
  const message =
    'the archive has weights as safetensors and as a DeepSpeed universal checkpoint; send one of the two';
  return new ZerofleetError('model_archive_invalid', message);
}

/** The error for a missing file of a model. */
export function missing(name: string): ZerofleetError {
  return new ZerofleetError(
    'model_file_missing',
    `there is no ${name}; a model needs the files of a Hugging Face model's folder, and an adapter those of a PEFT folder and its base`,
    { details: { file: name } },
  );
}
