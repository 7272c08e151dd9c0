"""Networks of torchvision, timm and transformers with random weights, small or with small inputs."""
import torch


def image(size=64):
    return (torch.randn(1, 3, size, size),)


def words(count=9):
    mask = torch.ones(2, count, dtype=torch.int64)
    mask[1:, count // 2 :] = 0
    return {"input_ids": torch.randint(1, 500, (2, count)), "attention_mask": mask}


def vision(name, size=64, **options):
    def make():
        from torchvision import models

        module = getattr(models, name, None) or getattr(models.segmentation, name)
        return module(weights=None, **options), image(size), {}

    return make


def vit():
    from torchvision.models import VisionTransformer

    module = VisionTransformer(
        image_size=32, patch_size=8, num_layers=3, num_heads=4, hidden_dim=64, mlp_dim=128, num_classes=10)
    return module, image(32), {}


def convnext():
    from torchvision.models.convnext import CNBlockConfig, ConvNeXt

    blocks = [CNBlockConfig(24, 48, 2), CNBlockConfig(48, 96, 2), CNBlockConfig(96, None, 3)]
    return ConvNeXt(blocks, num_classes=10), image(), {}


def swin():
    from torchvision.models import SwinTransformer

    module = SwinTransformer([4, 4], 24, [2, 2, 2], [3, 6, 12], [4, 4], num_classes=10)
    return module, image(), {}


def densenet():
    from torchvision.models import DenseNet

    return DenseNet(12, (6, 12, 24, 16), 24, num_classes=10), image(), {}


def from_timm(name, size=64, **options):
    def make():
        import timm

        return timm.create_model(name, pretrained=False, num_classes=10, **options), image(size), {}

    return make


TEXT = dict(vocab_size=500, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
            max_position_embeddings=64)


def text(network, config, **options):
    def make():
        import transformers

        config_ = getattr(transformers, config)(**{**TEXT, **options})
        config_.use_cache = False
        return getattr(transformers, network)(config_), (), words()

    return make


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=500, n_embd=64, n_layer=2, n_head=4, n_positions=64, use_cache=False, bos_token_id=0,
                        eos_token_id=0, attn_implementation="eager")
    return GPT2LMHeadModel(config), (), {"input_ids": torch.randint(1, 500, (2, 9))}


def t5():
    from transformers import T5Config, T5EncoderModel

    config = T5Config(vocab_size=500, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, use_cache=False)
    return T5EncoderModel(config), (), words()


def whisper():
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    config = WhisperConfig(vocab_size=500, d_model=64, encoder_layers=2, encoder_attention_heads=4, encoder_ffn_dim=128,
                           num_mel_bins=20, max_source_positions=50, init_std=0.1)
    return WhisperEncoder(config), (torch.randn(1, 20, 100),), {}


def wav2vec2():
    from transformers import Wav2Vec2Config, Wav2Vec2Model

    config = Wav2Vec2Config(
        vocab_size=32, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
        conv_dim=(32, 32, 32), conv_kernel=(10, 3, 2), conv_stride=(5, 2, 2), num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=4, apply_spec_augment=False)
    return Wav2Vec2Model(config), (torch.randn(1, 1600),), {}


def segformer():
    from transformers import SegformerConfig, SegformerForSemanticSegmentation

    config = SegformerConfig(hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 3, 4],
                             decoder_hidden_size=32, num_labels=5)
    return SegformerForSemanticSegmentation(config), (), {"pixel_values": torch.randn(1, 3, 64, 64)}


NETWORKS = {
    "resnet18": vision("resnet18", num_classes=10),
    "mobilenet_v2": vision("mobilenet_v2", num_classes=10),
    "mobilenet_v3_small": vision("mobilenet_v3_small", num_classes=10),
    "efficientnet_b0": vision("efficientnet_b0", num_classes=10),
    "squeezenet1_1": vision("squeezenet1_1", num_classes=10),
    "shufflenet_v2_x0_5": vision("shufflenet_v2_x0_5", num_classes=10),
    "mnasnet0_5": vision("mnasnet0_5", num_classes=10),
    "regnet_y_400mf": vision("regnet_y_400mf", num_classes=10),
    "deeplabv3_mobilenet_v3_large": vision("deeplabv3_mobilenet_v3_large", weights_backbone=None, num_classes=5),
    "lraspp_mobilenet_v3_large": vision("lraspp_mobilenet_v3_large", weights_backbone=None, num_classes=5),
    "vit": vit,
    "convnext": convnext,
    "swin": swin,
    "densenet": densenet,
    "mobilevit_xxs": from_timm("mobilevit_xxs"),
    "mobilenetv4_conv_small": from_timm("mobilenetv4_conv_small"),
    "ghostnet_100": from_timm("ghostnet_100"),
    "repvgg_a0": from_timm("repvgg_a0"),
    "edgenext_xx_small": from_timm("edgenext_xx_small"),
    "fastvit_t8": from_timm("fastvit_t8"),
    "levit_128s": from_timm("levit_128s", 224),
    "efficientformer_l1": from_timm("efficientformer_l1", 224),
    "convnextv2_atto": from_timm("convnextv2_atto"),
    "bert": text("BertModel", "BertConfig"),
    "distilbert": text("DistilBertModel", "DistilBertConfig", dim=64, n_layers=2, n_heads=4, hidden_dim=128),
    "albert": text("AlbertModel", "AlbertConfig", embedding_size=32),
    "llama": text("LlamaForCausalLM", "LlamaConfig", num_key_value_heads=2, pad_token_id=0),
    "gpt2": gpt2,
    "t5": t5,
    "whisper": whisper,
    "wav2vec2": wav2vec2,
    "segformer": segformer,
}
