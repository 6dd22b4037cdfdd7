/** Families of which some layers may have a sliding window. */
import type { ConfigReader } from '../reader.js';
import type { ConfigOf } from './family.js';
import { LIMITS } from './limits.js';

type LayerTypes = ConfigOf<'qwen2'>['layer_types'];
type SwitchedWindow = Pick<ConfigOf<'qwen2'>, 'use_sliding_window' | 'sliding_window'>;

const TYPES = ['full_attention', 'sliding_attention'] as const;

/** Reads a window that is used only if another field says so. */
export function readSwitchedWindow(reader: ConfigReader, fallback: number | null): SwitchedWindow {
  const useSlidingWindow = reader.flag('use_sliding_window', false);
  // transformers writes 0 where a family does not use its window.
  const none = useSlidingWindow ? null : 0;
  const window = reader.integerOrNull('sliding_window', { ...LIMITS.window, fallback }, none);
  return { use_sliding_window: useSlidingWindow, sliding_window: useSlidingWindow ? window : null };
}

/**
 * @param window null: no layer has one
 * @param slides returns whether a layer has the window if the field is absent
 */
export function readLayerTypes(
  reader: ConfigReader,
  layers: number,
  window: number | null,
  slides: (layer: number) => boolean,
): LayerTypes {
  const given = reader.list('layer_types', TYPES, 'Other kinds of attention are not supported.');
  if (given !== undefined && given.length !== layers)
    reader.fail('layer_types', 'wrong_length', `has ${given.length} entries; num_hidden_layers is ${layers}`);
  if (window === null && given?.includes('sliding_attention'))
    reader.fail(
      'layer_types',
      'model_field_conflict',
      'a layer has the type sliding_attention, but no window is set: set sliding_window, and use_sliding_window where the family has it',
    );
  return (
    given ??
    Array.from({ length: layers }, (_, layer) =>
      window !== null && slides(layer) ? 'sliding_attention' : 'full_attention',
    )
  );
}

export function layerWindows(config: { layer_types: LayerTypes; sliding_window: number | null }): number[] {
  return config.layer_types.map((type) => (type === 'sliding_attention' ? (config.sliding_window ?? 0) : 0));
}

/** Windows of a Qwen: some layers may have one. */
type Windows = Pick<
  ConfigOf<'qwen2'>,
  'use_sliding_window' | 'sliding_window' | 'max_window_layers' | 'layer_types'
>;

/** @param slides returns whether a layer has the window by default */
export function readQwenWindows(
  reader: ConfigReader,
  layers: number,
  slides = (layer: number, maxWindowLayers: number) => layer >= maxWindowLayers,
): Windows {
  const window = readSwitchedWindow(reader, 4096);
  const maxWindowLayers = reader.integer('max_window_layers', { min: 0, max: 1024, fallback: 28 });
  return {
    ...window,
    max_window_layers: maxWindowLayers,
    layer_types: readLayerTypes(reader, layers, window.sliding_window, (layer) =>
      slides(layer, maxWindowLayers),
    ),
  };
}
